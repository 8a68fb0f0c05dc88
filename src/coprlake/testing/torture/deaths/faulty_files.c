/* Makes the n-th file operation of a process fail or kill it, and shifts its clock.
 *
 * Loaded with LD_PRELOAD, it wraps the file functions of the C library, so it also sees what native code does
 * (delta-rs, Arrow, DuckDB). Nothing happens until the process calls `coprlake_arm`: then operations on files below one
 * folder are counted, and operation number `at` fails. A forked child has its own count.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { OPEN = 1, CREATE = 2, READ = 4, WRITE = 8, SYNC = 16, LINK = 32, UNLINK = 64, RENAME = 128, MKDIR = 256, LIST = 512 };
enum { LASTING = 1, DEADLY = 2, LATE = 4, TORN = 8 };

static char folder[4096];
static size_t folder_length;
static unsigned watched;
static long target, counted;
static int error_number, mode, armed;
static char fired[4400];
static long clock_offset, clock_jump, clock_jump_at = -1;
static int files_follow;

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real; })

/* --- what a test calls --- */

void coprlake_arm(const char *path, unsigned kinds, long at, int error, int how) {
    snprintf(folder, sizeof folder, "%s", path);
    folder_length = strlen(folder);
    watched = kinds;
    target = at;
    counted = 0;
    error_number = error;
    mode = how;
    fired[0] = 0;
    __atomic_store_n(&armed, 1, __ATOMIC_SEQ_CST);
}

long coprlake_disarm(void) {
    __atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&counted, __ATOMIC_SEQ_CST);
}

const char *coprlake_fired(void) { return fired; }

/* Shifts the clock by `now` seconds at once and by `later` more at operation `at`; with `follow`, files that are
 * synced get the wrong time, as if the system clock had jumped. */
void coprlake_clock(long now, long later, long at, int follow) {
    clock_offset = now;
    clock_jump = later;
    clock_jump_at = at;
    files_follow = follow;
}

/* --- deciding --- */

static int is_below(const char *path) {
    return path && strncmp(path, folder, folder_length) == 0 && (path[folder_length] == '/' || !path[folder_length]);
}

static int path_of(int directory, const char *path, char *out, size_t size) {
    if (!path) return 0;
    if (path[0] == '/' || directory == AT_FDCWD) return snprintf(out, size, "%s", path) > 0;
    char link[64], base[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    ssize_t length = readlink(link, base, sizeof base - 1);
    if (length < 0) return 0;
    base[length] = 0;
    return snprintf(out, size, "%s/%s", base, path) > 0;
}

/* 0: continue; 1: fail without doing it; 2: do it, then fail; 3: do half of it. */
static int decide(unsigned kind, const char *name, const char *path) {
    if (!__atomic_load_n(&armed, __ATOMIC_SEQ_CST) || !(watched & kind) || !is_below(path)) return 0;
    long number = __atomic_fetch_add(&counted, 1, __ATOMIC_SEQ_CST);
    if (number == clock_jump_at) {
        clock_offset += clock_jump;
        clock_jump_at = -1;
    }
    if (target < 0 || number < target || (number > target && !(mode & LASTING))) return 0;
    if (number == target) snprintf(fired, sizeof fired, "%s %s", name, path);
    if (mode & DEADLY) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    if (number == target && (mode & TORN) && kind == WRITE) return 3;
    return mode & LATE ? 2 : 1;
}

static int decide_at(unsigned kind, const char *name, int directory, const char *path) {
    if (!__atomic_load_n(&armed, __ATOMIC_SEQ_CST) || !(watched & kind)) return 0;
    char whole[8192];
    int saved = errno;
    int known = path_of(directory, path, whole, sizeof whole);
    errno = saved;
    return known ? decide(kind, name, whole) : 0;
}

static int decide_fd(unsigned kind, const char *name, int descriptor) {
    if (!__atomic_load_n(&armed, __ATOMIC_SEQ_CST) || !(watched & kind) || descriptor < 3) return 0;
    char link[64], path[4096];
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (length <= 0) return 0;
    path[length] = 0;
    return decide(kind, name, path);
}

#define FAIL(value) do { errno = error_number; return (value); } while (0)
#define GUARD(decision, failed, call) do { \
        int decided = (decision); \
        if (decided == 1) FAIL(failed); \
        __typeof__(call) result = (call); \
        if (decided == 2) FAIL(failed); \
        return result; \
    } while (0)

/* --- opening --- */

static unsigned open_kind(int flags) {
    if (flags & O_DIRECTORY) return LIST;
    return (flags & (O_CREAT | O_WRONLY | O_RDWR | O_TRUNC)) ? CREATE : OPEN;
}

#define MODE_ARGUMENT \
    mode_t permissions = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        permissions = va_arg(rest, mode_t); \
        va_end(rest); \
    }

/* An open that fails late would leak its descriptor, and shows nothing that an early failure does not. */
#define OPENING(name, directory, call) \
    MODE_ARGUMENT \
    if (decide_at(open_kind(flags), #name, directory, path)) FAIL(-1); \
    return call;

int open(const char *path, int flags, ...) { OPENING(open, AT_FDCWD, REAL(open)(path, flags, permissions)) }
int open64(const char *path, int flags, ...) { OPENING(open64, AT_FDCWD, REAL(open64)(path, flags, permissions)) }
int openat(int at, const char *path, int flags, ...) { OPENING(openat, at, REAL(openat)(at, path, flags, permissions)) }
int openat64(int at, const char *path, int flags, ...) { OPENING(openat64, at, REAL(openat64)(at, path, flags, permissions)) }

DIR *opendir(const char *path) {
    if (decide_at(LIST, "opendir", AT_FDCWD, path)) FAIL(NULL);
    return REAL(opendir)(path);
}

/* --- reading and writing --- */

ssize_t read(int fd, void *data, size_t size) { GUARD(decide_fd(READ, "read", fd), -1, REAL(read)(fd, data, size)); }
ssize_t pread(int fd, void *data, size_t size, off_t place) {
    GUARD(decide_fd(READ, "pread", fd), -1, REAL(pread)(fd, data, size, place));
}
ssize_t pread64(int fd, void *data, size_t size, off64_t place) {
    GUARD(decide_fd(READ, "pread64", fd), -1, REAL(pread64)(fd, data, size, place));
}
ssize_t readv(int fd, const struct iovec *parts, int count) {
    GUARD(decide_fd(READ, "readv", fd), -1, REAL(readv)(fd, parts, count));
}
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t place) {
    if (fd >= 3 && decide_fd(READ, "mmap", fd)) FAIL(MAP_FAILED);
    return REAL(mmap)(address, size, protection, flags, fd, place);
}
void *mmap64(void *address, size_t size, int protection, int flags, int fd, off64_t place) {
    if (fd >= 3 && decide_fd(READ, "mmap64", fd)) FAIL(MAP_FAILED);
    return REAL(mmap64)(address, size, protection, flags, fd, place);
}

#define WRITING(name, size, call) do { \
        int decided = decide_fd(WRITE, #name, fd); \
        if (decided == 1 || decided == 2) FAIL(-1); \
        if (decided == 3 && size > 1) size /= 2; \
        return call; \
    } while (0)

ssize_t write(int fd, const void *data, size_t size) { WRITING(write, size, REAL(write)(fd, data, size)); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
    WRITING(pwrite, size, REAL(pwrite)(fd, data, size, place));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
    WRITING(pwrite64, size, REAL(pwrite64)(fd, data, size, place));
}
ssize_t writev(int fd, const struct iovec *parts, int count) { WRITING(writev, count, REAL(writev)(fd, parts, count)); }
int ftruncate(int fd, off_t size) { GUARD(decide_fd(WRITE, "ftruncate", fd), -1, REAL(ftruncate)(fd, size)); }
int ftruncate64(int fd, off64_t size) { GUARD(decide_fd(WRITE, "ftruncate64", fd), -1, REAL(ftruncate64)(fd, size)); }

static void follow_clock(int fd) {
    if (!files_follow || !clock_offset) return;
    struct timespec times[2];
    int saved = errno;
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[1] = times[0];
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0) {
        path[length] = 0;
        if (is_below(path)) futimens(fd, times);
    }
    errno = saved;
}

int fsync(int fd) {
    follow_clock(fd);
    GUARD(decide_fd(SYNC, "fsync", fd), -1, REAL(fsync)(fd));
}
int fdatasync(int fd) {
    follow_clock(fd);
    GUARD(decide_fd(SYNC, "fdatasync", fd), -1, REAL(fdatasync)(fd));
}

/* --- names --- */

int link(const char *from, const char *to) { GUARD(decide_at(LINK, "link", AT_FDCWD, to), -1, REAL(link)(from, to)); }
int linkat(int at, const char *from, int into, const char *to, int flags) {
    GUARD(decide_at(LINK, "linkat", into, to), -1, REAL(linkat)(at, from, into, to, flags));
}
int unlink(const char *path) { GUARD(decide_at(UNLINK, "unlink", AT_FDCWD, path), -1, REAL(unlink)(path)); }
int unlinkat(int at, const char *path, int flags) {
    GUARD(decide_at(UNLINK, "unlinkat", at, path), -1, REAL(unlinkat)(at, path, flags));
}
int remove(const char *path) { GUARD(decide_at(UNLINK, "remove", AT_FDCWD, path), -1, REAL(remove)(path)); }
int rename(const char *from, const char *to) {
    GUARD(decide_at(RENAME, "rename", AT_FDCWD, to), -1, REAL(rename)(from, to));
}
int renameat(int at, const char *from, int into, const char *to) {
    GUARD(decide_at(RENAME, "renameat", into, to), -1, REAL(renameat)(at, from, into, to));
}
int renameat2(int at, const char *from, int into, const char *to, unsigned flags) {
    GUARD(decide_at(RENAME, "renameat2", into, to), -1, REAL(renameat2)(at, from, into, to, flags));
}
int mkdir(const char *path, mode_t permissions) {
    GUARD(decide_at(MKDIR, "mkdir", AT_FDCWD, path), -1, REAL(mkdir)(path, permissions));
}

/* --- the clock --- */

int clock_gettime(clockid_t which, struct timespec *out) {
    int result = REAL(clock_gettime)(which, out);
    if (!result && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) out->tv_sec += clock_offset;
    return result;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    int result = REAL(gettimeofday)(out, zone);
    if (!result) out->tv_sec += clock_offset;
    return result;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
