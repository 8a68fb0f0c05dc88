"""The Java side of the Lucene stores: a token stream of our rules, and calls that take and return whole batches.

It is compiled once with the compiler of the JDK and kept in the user's cache. So no call from Python is made for a
token, a line or an entry of the dictionary, and Lucene is as fast as in a program of Java.
"""

import os
import subprocess
import tempfile
import zlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from coprlake.config import cache_folder
from coprlake.errors import StorageError, UsageError
from coprlake.spark.runtime.jars import fetch
from coprlake.spark.runtime.java import java_executable

VERSION: Final = "9.12.3"
COORDINATE: Final = f"org.apache.lucene:lucene-core:{VERSION}"
JVM_OPTIONS: Final = ("-Xmx1g", "-XX:+UseSerialGC", "-Djava.awt.headless=true")
"""What memory it may have; and the collector that runs on the thread that is measured."""
_COMPILER: Final = "jdk.compiler"


def missing() -> str | None:
    """What there is not, and how to get it."""
    if find_spec("jpype") is None:
        return "JPype is not installed; install it with: pip install -c constraints.txt jpype1"
    try:
        if not _has_compiler(java_executable()):
            return "the Java found has no compiler; install a JDK (Debian, Ubuntu: apt install default-jdk-headless)"
        _class_path()
    except (UsageError, StorageError, OSError) as error:
        return str(error)
    return None


@cache
def lucene() -> Any:
    """The class `CoprLucene`, in a Java machine that lives as long as the process."""
    import jpype

    if not jpype.isJVMStarted():
        jpype.startJVM(*JVM_OPTIONS, classpath=[str(path) for path in _class_path()], convertStrings=False)
    return jpype.JClass("CoprLucene")


@cache
def _has_compiler(java: str) -> bool:
    told = subprocess.run([java, "--list-modules"], capture_output=True, text=True, timeout=60, check=False).stdout
    return f"{_COMPILER}@" in told


def _class_path() -> list[Path]:
    """Lucene, and our class compiled for it."""
    jars = fetch([COORDINATE], cache_folder() / f"lucene-{VERSION}")
    folder = cache_folder() / f"lucene-{VERSION}-stores-{zlib.crc32(SOURCE.encode()):08x}"
    if not folder.is_dir():
        _compile(jars, folder)
    return [*jars, folder]


def _compile(jars: list[Path], folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".compiling-") as name:
        source, made = Path(name) / "CoprLucene.java", Path(name) / "classes"
        source.write_text(SOURCE)
        command = [java_executable(), "-m", f"{_COMPILER}/com.sun.tools.javac.Main", "--release", "17", "-nowarn"]
        command += ["-cp", os.pathsep.join(map(str, jars)), "-d", str(made), str(source)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if result.returncode:
            raise StorageError(
                f"the Java side of the Lucene stores cannot be compiled:\n{result.stdout}{result.stderr}"
            )
        try:
            made.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was faster
                raise


SOURCE: Final = r"""import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.BytesTermAttribute;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.*;
import org.apache.lucene.search.*;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.MMapDirectory;
import org.apache.lucene.util.AttributeSource;
import org.apache.lucene.util.BytesRef;

/** Batches of lines in an index of Lucene: a document a line, or a document a batch. */
public final class CoprLucene {
  static final String CONTENT = "content", BATCH = "batch", IMMENSE = "immense";
  static final byte WORD = 0, MARK = 1, BLANK = 2, FOREIGN = 3;
  static final byte[] KIND = new byte[256];
  static final boolean[] SEPARATOR = new boolean[256];

  static {
    for (int b = 0; b < 256; b++) {
      boolean word = b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z';
      KIND[b] = word ? WORD : b >= 0x80 ? FOREIGN : b <= 0x20 || b == 0x7f ? BLANK : MARK;
    }
    for (char c : ".:-_/@\\".toCharArray()) SEPARATOR[c] = true;
  }

  static int kind(byte b) {
    return KIND[b & 255];
  }

  static int runs(byte[] text, int start, int end) {
    int runs = 1;
    for (int i = start + 1; i < end; i++) if (kind(text[i]) != kind(text[i - 1])) runs++;
    return runs;
  }

  /** The tokens of rules 1-5 of some lines, each a slice of the text, which is in lower case already. */
  static final class Tokens extends TokenStream {
    boolean immense;  // some token was longer than Lucene takes
    private final BytesTermAttribute term = addAttribute(BytesTermAttribute.class);
    private final BytesRef slice = new BytesRef();
    private byte[] text;
    private int[] starts;
    private int line, lastLine, at, end;
    private int links;  // words before this one that hang together by single separators: 0, 1, or 2 if by dots
    private int one, two;  // where the word before this one begins, and the one before that
    private int pair, triple;  // where a token of rule 4 or 5 that is still to be told begins, or -1
    private boolean dot;

    void set(byte[] text, int[] starts, int line, int lastLine) {
      this.text = text;
      this.starts = starts;
      this.line = line;
      this.lastLine = lastLine;
      slice.bytes = text;
      immense = false;
    }

    @Override public void reset() {
      clearAttributes();
      begin();
      pair = triple = -1;
    }

    private void begin() {
      at = starts[line];
      end = starts[line + 1];
      links = 0;
    }

    @Override public boolean incrementToken() {
      while (true) {
        int start;
        if (pair >= 0) {
          start = pair;
          pair = -1;
        } else if (triple >= 0) {
          start = triple;
          triple = -1;
        } else {
          while (at < end && kind(text[at]) == BLANK) at++;
          if (at == end) {
            if (++line >= lastLine) return false;
            begin();
            continue;
          }
          start = at;
          int kind = kind(text[at]);
          do at++; while (at < end && kind(text[at]) == kind);
          if (kind == WORD) afterWord(start);
        }
        if (at - start <= IndexWriter.MAX_TERM_LENGTH) {
          slice.offset = start;
          slice.length = at - start;
          term.setBytesRef(slice);
          return true;
        }
        immense = true;
      }
    }

    private void afterWord(int start) {
      pair = links > 0 ? one : -1;
      triple = links > 1 ? two : -1;
      two = one;
      one = start;
      if (at + 1 < end && SEPARATOR[text[at] & 255] && kind(text[at + 1]) == WORD) {
        boolean dotNow = text[at] == '.';
        links = links > 0 && dot && dotNow ? 2 : 1;
        dot = dotNow;
      } else {
        links = 0;
      }
    }
  }

  /** Writes an index, on the thread that calls. */
  public static final class Writer {
    private final IndexWriter writer;
    private final boolean documentALine;
    private final Tokens tokens = new Tokens();
    private final NumericDocValuesField batch = new NumericDocValuesField(BATCH, 0);
    private final List<IndexableField> document;
    private final List<IndexableField> immense;

    public Writer(String folder, double bufferMegabytes, boolean documentALine) throws IOException {
      IndexWriterConfig config = new IndexWriterConfig(null);
      config.setRAMBufferSizeMB(bufferMegabytes);
      config.setUseCompoundFile(false);
      config.setMergeScheduler(new SerialMergeScheduler());
      writer = new IndexWriter(new MMapDirectory(Path.of(folder)), config);
      this.documentALine = documentALine;
      FieldType type = new FieldType();
      type.setIndexOptions(IndexOptions.DOCS);
      type.setOmitNorms(true);
      type.freeze();
      document = List.of(new Field(CONTENT, tokens, type), batch);
      immense = List.of(new StringField(IMMENSE, "1", Field.Store.NO), batch);
    }

    /** Index the lines text[starts[i]:starts[i + 1]] of a batch; the text is lower-cased in place. */
    public void add(int number, byte[] text, int[] starts) throws IOException {
      for (int i = 0; i < text.length; i++) if (text[i] >= 'A' && text[i] <= 'Z') text[i] += 32;
      batch.setLongValue(number);
      int lines = starts.length - 1, step = documentALine ? 1 : Math.max(lines, 1);
      boolean tooLong = false;
      for (int line = 0; line < lines; line += step) {
        tokens.set(text, starts, line, line + step);
        writer.addDocument(document);
        tooLong |= tokens.immense;
      }
      if (tooLong) writer.addDocument(immense);
    }

    public void finish() throws IOException {
      writer.forceMerge(1);
      writer.commit();
      Directory directory = writer.getDirectory();
      writer.close();
      directory.close();
    }
  }

  /** Terms with these bytes inside of them, found by going through the dictionary. */
  static final class Inside extends MultiTermQuery {
    private final byte[] text;
    private final boolean openStart, openEnd;
    private final int runs;

    Inside(byte[] text, boolean openStart, boolean openEnd, int runs) {
      super(CONTENT, CONSTANT_SCORE_BLENDED_REWRITE);
      this.text = text;
      this.openStart = openStart;
      this.openEnd = openEnd;
      this.runs = runs;
    }

    private boolean accepts(BytesRef term) {
      byte[] bytes = term.bytes;
      int from = term.offset, end = from + term.length, last = end - text.length;
      if (!openEnd) from = Math.max(from, last);
      byte first = text[0];
      for (int i = from; i <= last; i++)
        if (bytes[i] == first && Arrays.equals(bytes, i, i + text.length, text, 0, text.length))
          return runs(bytes, term.offset, end) == runs;
      return false;
    }

    @Override protected TermsEnum getTermsEnum(Terms terms, AttributeSource attributes) throws IOException {
      BytesRef prefix = openStart ? null : new BytesRef(text);
      return new FilteredTermsEnum(terms.iterator(), prefix != null) {
        { if (prefix != null) setInitialSeekTerm(prefix); }

        @Override protected AcceptStatus accept(BytesRef term) {
          if (prefix == null) return accepts(term) ? AcceptStatus.YES : AcceptStatus.NO;
          if (!org.apache.lucene.util.StringHelper.startsWith(term, prefix)) return AcceptStatus.END;
          return runs(term.bytes, term.offset, term.offset + term.length) == runs ? AcceptStatus.YES : AcceptStatus.NO;
        }
      };
    }

    @Override public void visit(QueryVisitor visitor) {
      visitor.visitLeaf(this);
    }

    @Override public String toString(String field) {
      return "inside";
    }

    @Override public boolean equals(Object other) {
      return sameClassAs(other) && Arrays.equals(text, ((Inside) other).text) && runs == ((Inside) other).runs
          && openStart == ((Inside) other).openStart && openEnd == ((Inside) other).openEnd;
    }

    @Override public int hashCode() {
      return Objects.hash(classHash(), Arrays.hashCode(text), openStart, openEnd, runs);
    }
  }

  /** Finds batches. */
  public static final class Reader {
    private final Directory directory;
    private final DirectoryReader reader;
    private final IndexSearcher searcher;
    private final boolean hasImmense;

    public Reader(String folder) throws IOException {
      directory = new MMapDirectory(Path.of(folder));
      reader = DirectoryReader.open(directory);
      searcher = new IndexSearcher(reader);
      searcher.setQueryCache(null);
      hasImmense = reader.docFreq(new Term(IMMENSE, "1")) > 0;
    }

    /**
     * The batches that have a document with a term for each piece, or null if there is none. A piece is three numbers,
     * how (1 for an open start, 2 for an open end), runs and length, and its bytes: one array, as calls cost.
     */
    public int[] find(byte[] packed) throws IOException {
      BooleanQuery.Builder all = new BooleanQuery.Builder();
      Query only = null;
      int count = 0;
      for (ByteBuffer pieces = ByteBuffer.wrap(packed); pieces.hasRemaining(); count++) {
        int how = pieces.getInt(), runs = pieces.getInt();
        byte[] text = new byte[pieces.getInt()];
        pieces.get(text);
        only = how == 0
            ? new TermQuery(new Term(CONTENT, new BytesRef(text)))
            : new Inside(text, (how & 1) != 0, (how & 2) != 0, runs);
        all.add(only, Occur.FILTER);
      }
      BitSet batches = new BitSet();
      collect(count == 1 ? only : all.build(), batches);
      if (hasImmense) collect(new TermQuery(new Term(IMMENSE, "1")), batches);
      return batches.isEmpty() ? null : batches.stream().toArray();
    }

    private void collect(Query query, BitSet batches) throws IOException {
      searcher.search(new ConstantScoreQuery(query), new SimpleCollector() {
        private NumericDocValues numbers;

        @Override protected void doSetNextReader(LeafReaderContext leaf) throws IOException {
          numbers = DocValues.getNumeric(leaf.reader(), BATCH);
        }

        @Override public void collect(int document) throws IOException {
          if (numbers.advanceExact(document)) batches.set((int) numbers.longValue());
        }

        @Override public ScoreMode scoreMode() {
          return ScoreMode.COMPLETE_NO_SCORES;
        }
      });
    }

    public void close() throws IOException {
      reader.close();
      directory.close();
    }
  }
}
"""
