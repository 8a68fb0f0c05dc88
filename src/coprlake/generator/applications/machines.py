"""Operating systems: remote logins, kernels, mail transfer, service managers, timers, desktops and phones."""

# ruff: noqa: E501 - a template is one line, however long the log line is

from coprlake.generator.template import Application

SSHD = Application(
    "sshd",
    "%b %e %H:%M:%S",
    "<time> <host> sshd[<task>]: ",
    """
Invalid user <user> from <ip> port <port>
?pam_unix(sshd:auth): check pass; user unknown
?pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=<ip>
Failed password for invalid user <user> from <ip> port <port> ssh2
?Received disconnect from <ip> port <port>:11: Bye Bye [preauth]
Disconnected from invalid user <user> <ip> port <port> [preauth]

Accepted publickey for <user> from <lan> port <port> ssh2: ED25519 SHA256:<=kQ3v7dPzR1|Yw81mLs0Tq|b9ZpX4cEuG|Hf62NqVaKd>
pam_unix(sshd:session): session opened for user <user>(uid=<num:1010>) by (uid=0) session c-<id:pam>
?User child is on pid <num:12000>
Received disconnect from <lan> port <port>:11: disconnected by user
pam_unix(sshd:session): session closed for user <user>

Failed password for <user> from <ip> port <port> ssh2
?message repeated <to> times: [ Failed password for <user> from <ip> port <port> ssh2]
Connection closed by authenticating user <user> <ip> port <port> [preauth]

Connection <id:ssh> closed by <ip> port <port> [preauth]

error: kex_exchange_identification: <Connection closed by remote host|read: Connection reset by peer|banner line contains invalid characters>
?banner exchange: Connection from <ip> port <port>: invalid format

reverse mapping checking getaddrinfo for <=static|dyn|host|pool>-<thread:254>.isp.example.net [<ip>] failed.

Unable to negotiate with <ip> port <port>: no matching <key exchange method|host key type|cipher> found. Their offer: <diffie-hellman-group1-sha1|ssh-rsa,ssh-dss|aes128-cbc,3des-cbc> [preauth]

Received signal 15; terminating.
Server listening on 0.0.0.0 port 22.
Server listening on :: port 22.

fatal: Timeout before authentication for <ip> port <port>
""",
    pace_ms=600,
)

KERNEL = Application(
    "kernel",
    "%b %e %H:%M:%S",
    "<time> <host> kernel: [<seq:17>.<num:300>] ",
    """
eth<=0|1>: renamed from veth<hex:7>
docker0: port <thread:9>(veth<hex:7>) entered <blocking|disabled|forwarding> state
?device veth<hex:7> entered promiscuous mode

audit: type=1400 audit(<id:audit>.<num:400>:<seq>): apparmor="<ALLOWED|DENIED>" operation="<open|exec|ptrace|mount>" profile="<docker-default|snap.app|/usr/sbin/named>" name="<file>" pid=<num:9000> comm="<node|java|python3|nginx>"

TCP: request_sock_TCP: Possible SYN flooding on port <443|8080|5432>. Sending cookies.  Check SNMP counters.

<=java|node|python3|postgres> invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=<0|936|999>
CPU: <num:5> PID: <num:9000> Comm: <=java|node|python3|postgres> Not tainted 6.1.0-<=18|21|25>-amd64 #1
Call Trace:
? dump_stack_lvl+0x44/0x5c
? dump_header+0x4a/0x211
? oom_kill_process.cold+0xb/0x10
?memory: usage <num:900000>kB, limit <=1048576|2097152>kB, failcnt <num:4000>
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=<hex:16>,task=<=java|node|python3|postgres>,pid=<num:9000>,uid=<num:1000>
Memory cgroup out of memory: Killed process <num:9000> (<=java|node|python3|postgres>) total-vm:<num:4000000>kB, anon-rss:<num:900000>kB, file-rss:<num:3000>kB, shmem-rss:0kB

EXT4-fs (<=sda1|nvme0n1p1|dm-0>): <mounted filesystem with ordered data mode|re-mounted. Opts: errors=remount-ro|recovery complete>

blk_update_request: I/O error, dev <=sdb|sdc|nvme1n1>, sector <num:90000000> op 0x0:(READ) flags 0x0 phys_seg <num:4> prio class 0
Buffer I/O error on dev <=sdb|sdc|nvme1n1>, logical block <num:9000000>, async page read

<=node|java|chrome>[<num:9000>]: segfault at <to> ip <ptr> sp <ptr> error <4|6> in <=libc.so.6|libjvm.so|node>[<ptr>+<hex:5>]

perf: interrupt took too long (<num:3000> > <num:2500>), lowering kernel.perf_event_max_sample_rate to <num:60000>

INFO: task <=kworker/u16:2|jbd2/dm-0-8|java>:<num:900> blocked for more than 120 seconds.
task:<=kworker/u16:2|jbd2/dm-0-8|java> state:D stack:0 pid:<num:900> ppid:2 flags:0x00004000
? __schedule+0x351/0xa20
? schedule+0x5d/0xe0
? io_schedule+0x42/0x70

CPU<thread:16>: Core temperature above threshold, cpu clock throttled (total events = <num:900>)
CPU<thread:16>: Core temperature/speed normal

usb 1-<=1|2|4>: new high-speed USB device number <thread:90> using xhci_hcd
usb 1-<=1|2|4>: New USB device found, idVendor=<=046d|0781|8087>, idProduct=<=c52b|5581|0026>, bcdDevice=<thread:30>.00
""",
    pace_ms=2,
)

POSTFIX = Application(
    "postfix",
    "%b %e %H:%M:%S",
    "<time> <node:mx> postfix/",
    """
smtpd[<task>]: connect from unknown[<ip>]
smtpd[<task>]: <hex:10>: client=unknown[<ip>]
cleanup[<thread:9000>]: <hex:10>: message-id=<<session>@<=example.com|mail.example.net|corp.example.com>>
qmgr[<pid>]: <hex:10>: from=<<mail>>, size=<size:9000>, nrcpt=<1|2|3> (queue active)
smtp[<thread:9000>]: <hex:10>: to=<<mail:b>>, relay=mx<=1|2>.example.org[<ip:b>]:25, delay=<dec2:1>, delays=<dec2:0.1>/<dec2:0.01>/<dec2:0.2>/<dec2:0.6>, dsn=2.0.0, status=sent (250 2.0.0 OK queued as <hex:9>)
qmgr[<pid>]: <hex:10>: removed
?smtpd[<task>]: disconnect from unknown[<ip>] ehlo=1 mail=1 rcpt=1 data=1 quit=1 commands=5

smtpd[<task>]: connect from unknown[<ip>]
?smtpd[<task>]: warning: unknown[<ip>]: SASL <LOGIN|PLAIN> authentication failed: <authentication failure|Connection lost to authentication server>
smtpd[<task>]: lost connection after <AUTH|EHLO|CONNECT|RCPT> from unknown[<ip>]
smtpd[<task>]: disconnect from unknown[<ip>] ehlo=1 auth=0/1 commands=1/2

smtpd[<task>]: NOQUEUE: reject: RCPT from unknown[<ip>]: 554 5.7.1 Service unavailable; Client host [<ip>] blocked using <zen.rbl.example.org|bl.rbl.example.net>; from=<<mail>> to=<<mail:b>> proto=ESMTP helo=<<=localhost|win-pc|mx1>>

smtp[<thread:9000>]: <hex:10>: to=<<mail:b>>, relay=none, delay=<dec2:4000>, delays=<dec2:4000>/0.02/30/0, dsn=4.4.1, status=deferred (connect to mx<=1|2>.example.org[<ip:b>]:25: Connection timed out)

local[<thread:9000>]: <hex:10>: to=<<user>@localhost>, orig_to=<<user>>, relay=local, delay=<dec2:0.1>, delays=0.05/0/0/0.03, dsn=2.0.0, status=sent (delivered to mailbox)

bounce[<thread:9000>]: <hex:10>: sender non-delivery notification: <hex:9>
?qmgr[<pid>]: <hex:9>: from=<>, size=<size:9000>, nrcpt=1 (queue active)

anvil[<thread:9000>]: statistics: max connection rate <num:6>/60s for (smtp:<ip>) at <time>
anvil[<thread:9000>]: statistics: max cache size <num:9> at <time>

master[<pid>]: reload -- version 3.7.11, configuration /etc/postfix
scache[<thread:9000>]: statistics: domain lookup hits=<num:40> miss=<num:9> success=<pct>%
""",
    pace_ms=90,
)

SYSTEMD = Application(
    "systemd",
    "%b %e %H:%M:%S",
    "<time> <host> systemd[1]: ",
    """
Started session-<id:session>.scope - Session <id:session> of User <user>.
?user@<thread:1100>.service: Deactivated successfully.
session-<id:session>.scope: Deactivated successfully.

Starting <=logrotate|apt-daily|fstrim|man-db|sysstat-collect|certbot>.service...
<=logrotate|apt-daily|fstrim|man-db|sysstat-collect|certbot>.service: Deactivated successfully.
Finished <=logrotate|apt-daily|fstrim|man-db|sysstat-collect|certbot>.service.
?<=logrotate|apt-daily|fstrim|man-db|sysstat-collect|certbot>.service: Consumed <dec:2>s CPU time.

run-docker-runtime\\x2drunc-moby-<hex:16>-runc.<hex:6>.mount: Deactivated successfully.

<=shop-api|worker|exporter|agent>.service: Main process exited, code=<exited|killed|dumped>, status=<1/FAILURE|9/KILL|143/n/a>
<=shop-api|worker|exporter|agent>.service: Failed with result '<exit-code|signal|oom-kill>'.
<=shop-api|worker|exporter|agent>.service: Scheduled restart job, restart counter is at <num:12>.
Stopped <=shop-api|worker|exporter|agent>.service.
Started <=shop-api|worker|exporter|agent>.service - with pid <num:9000>.

<=shop-api|worker|exporter|agent>.service: Watchdog timeout (limit <1min|3min>)!
<=shop-api|worker|exporter|agent>.service: Killing process <num:9000> (<=shop-api|worker|exporter|agent>) with signal SIGABRT.

Reached target <=network-online|multi-user|timers|paths>.target.
Listening on <=docker|ssh|snapd>.socket.

Created slice user-<thread:1100>.slice - User Slice of UID <thread:1100>.
Starting user-runtime-dir@<thread:1100>.service - User Runtime Directory /run/user/<thread:1100>...
Finished user-runtime-dir@<thread:1100>.service - User Runtime Directory /run/user/<thread:1100>.
Removed slice user-<thread:1100>.slice - User Slice of UID <thread:1100>.

systemd-journald.service: Sent <num:40> messages, suppressed <num:400> messages from <=shop-api|worker>.service
var-lib-docker-overlay2-<hex:12>-merged.mount: Deactivated successfully.

Reloading requested from client PID <num:9000> ('systemctl') (unit session-<num:900>.scope)...
Reloading finished in <ms:300> ms.
""",
    pace_ms=70,
)

CRON = Application(
    "cron",
    "%b %e %H:%M:%S",
    "<time> <host> CRON[<task>]: ",
    """
pam_unix(cron:session): session opened for user <=root|backup|www-data|deploy>(uid=<=0|34|33|1001>) by (uid=0)
(<=root|backup|www-data|deploy>) CMD (<=/usr/lib/sysstat/debian-sa1 1 1|/opt/backup/run.sh --incremental|cd / && run-parts --report /etc/cron.hourly|/usr/bin/php /srv/www/cron.php>)
pam_unix(cron:session): session closed for user <=root|backup|www-data|deploy>

(backup) INFO: snapshot <hex:8> of <file> took <dec:12> s, <size:9000000> bytes
?(backup) INFO: pruned <num:9> snapshots, <size:90000000> bytes freed

(backup) INFO: copy <file> -> vault:<id:vault> <size:4000000> bytes
?(backup) INFO: verify <file> ok crc=<hex:8>

(root) CMDOUT (rotated <file> to <file>.<to>.gz, <num:900> kB)

(www-data) CMDOUT (queue=<mail|thumbs|sitemap> processed=<num:60> failed=<to> seconds=<dec:4>)

(root) MAIL (mailed <num:200> bytes of output but got status 0x<0001|004b>)

(CRON) info (No MTA installed, discarding output)

(root) RELOAD (crontabs/root)
(system) RELOAD (/etc/cron.d/<=backup|sysstat|php>)

(deploy) CMDOUT (certificate for <shop|api|push>.example.com valid for <num:60> more days)

(root) ERROR (job <id:job> still running after <num:900> s, skipped)
(root) CMDOUT (df: <=/|/var|/srv/data|/mnt/vol1> <pct>% used, <size:90000000> kB free)
""",
    pace_ms=900,
)

WINDOWS = Application(
    "windows events",
    "%Y-%m-%d %H:%M:%S",
    "<time>, ",
    """
Security    4624  An account was successfully logged on. Subject=SYSTEM Account=CORP\\<user> LogonType=<3|2|10|5> LogonId=0x<hex:8> Workstation=WS-<thread:900> SourceAddress=<lan> SourcePort=<port> Process=C:\\Windows\\System32\\<lsass|svchost|winlogon>.exe
?Security    4672  Special privileges assigned to new logon. Account=CORP\\<user> LogonId=0x<hex:8> Privileges=SeSecurityPrivilege,SeBackupPrivilege
Security    4634  An account was logged off. Account=CORP\\<user> LogonId=0x<hex:8> LogonType=<3|2|10>

Security    4625  An account failed to log on. Account=CORP\\<user> Status=0xC000006D SubStatus=<0xC000006A|0xC0000064> Workstation=WS-<thread:900> SourceAddress=<ip>

Security    4688  A new process has been created. Creator=CORP\\<user> NewProcessId=0x<hex:4> Image=C:\\Program Files\\<Office\\outlook|Browser\\browser|Agent\\agent|Git\\bin\\git>.exe Parent=0x<hex:4> TokenElevation=%%193<6|7|8>
?Security    4689  A process has exited. Process=0x<hex:4> Status=0x<0|0|1>

System      7036  The <Windows Update|Print Spooler|Background Intelligent Transfer|Volume Shadow Copy> service entered the <running|stopped> state.

System      7031  The <Print Spooler|Agent|Indexer> service terminated unexpectedly. It has done this <to> time(s). Corrective action in <60000|120000> milliseconds: Restart the service.

CBS         Info  Session: <id:cbs>_<hex:8> initialized by client WindowsUpdateAgent.
CBS         Info  Read out cached package applicability for package: Package_for_KB50<thread:99999>~31bf3856ad364e35~amd64~~10.0.1.<to>, ApplicableState: <112|80>, CurrentState: <112|80>
?CBS         Info  Warning: Unrecognized packageExtended attribute.
CBS         Info  Session: <id:cbs>_<hex:8> finalized. Reboot required: <no|yes>

Application 1000  Faulting application name: <=outlook.exe|agent.exe|erp.exe>, version: 16.0.<num:9000>.<num:200>, exception code: 0xc0000005, fault offset: 0x<hex:8>, process id: 0x<hex:4>
Application 1001  Fault bucket <id:bucket>, type <4|5> Event Name: APPCRASH

System      37    The speed of processor <thread:8> in group 0 is being limited by system firmware for <num:70> seconds.

System      10016 The application-specific permission settings do not grant Local Activation for COM Server with CLSID {<=2593F8B9|8D8F4F83|C2F03A33>-<=4EAF|3594|21F5>} to user CORP\\<user> SID S-1-5-21-<=1180699209|877415012>-<num:4000>

TaskSched   201   Task "\\Microsoft\\Windows\\<Defrag\\ScheduledDefrag|UpdateOrchestrator\\Scan|DiskCleanup\\Silent>" completed with return code <0|0|2147942402> instance {<uuid>}
DNSClient   1014  Name resolution for the name <wpad|dc01|intranet>.corp.example.com timed out after none of the configured DNS servers responded.
""",
    pace_ms=400,
)

ANDROID = Application(
    "android",
    "%m-%d %H:%M:%S.{ms}",
    "<time>  <=1702|1421|2227|913>  <thread:4000> ",
    """
D PowerService: acquire lock=<num:200000000>, flags=0x1, tag="<=*sync*|view|audio|location>", name=com.example.<=mail|maps|player|chat>, uid=<=10037|10112|1000>, pid=<num:3000>
?D PowerService: release lock, tag="<=*sync*|view|audio|location>", held <ms:300> ms
V WindowMgr: Skipping token Window{<hex:7> u0 com.example.<=mail|maps|player|chat>/.<=Main|Detail|Login>Activity} -- going to hide

I ActivityMgr: START u0 {act=android.intent.action.<MAIN|VIEW> cmp=com.example.<=mail|maps|player|chat>/.<=Main|Detail|Login>Activity} from uid <10037|10112|1000>
I ActivityMgr: Displayed com.example.<=mail|maps|player|chat>/.<=Main|Detail|Login>Activity: +<ms:400>ms
?W Looper: Slow dispatch took <ms:200>ms main h=android.app.ActivityThread$H m=<110|159>

I AudioTrack: stop(<num:90>): called with <num:900000> frames delivered
D AudioHal: out_write: underrun <num:9> frames, fill <pct>%

D WifiState: rssi=-<num:60> speed=<72|144|433> Mbps freq=<2412|5180|5500> score=<pct>
D ConnService: NetworkAgent wlan0 validation <passed|failed> in <ms:90> ms, portal=<none|none|login>

E AndroidRuntime: FATAL EXCEPTION: <=main|worker-3|binder-2>
E AndroidRuntime: Process: com.example.<=mail|maps|player|chat>, PID: <num:9000>
E AndroidRuntime: java.lang.<=NullPointerException: name must not be null|IllegalStateException: fragment not attached|OutOfMemoryError: bitmap too large>
E AndroidRuntime: 	at com.example.<=mail|maps|player|chat>.ui.<=Main|Detail|Login>Presenter.bind(Presenter.java:<=88|131|204>)
E AndroidRuntime: 	at android.os.Handler.dispatchMessage(Handler.java:106)

I BatteryStats: level=<pct> temp=<num:310> volt=<num:4000> status=<discharging|charging|full> current=-<num:300>

I art: Background concurrent GC freed <num:30000>(<num:2>MB) objects, <num:40>(<num:900>KB) LOS objects, <pct>% free, <num:30>MB/<num:60>MB, paused <dec:1>ms total <dec:80>ms

D Location: fix provider=<gps|fused|network> lat=48.<num:30000> lon=14.<num:30000> acc=<dec:12> sats=<num:9>
D StepCounter: steps=<seq> cadence=<num:90> calories=<dec2:120>
""",
    pace_ms=5,
)

APPLICATIONS = (SSHD, KERNEL, POSTFIX, SYSTEMD, CRON, WINDOWS, ANDROID)
