#!/bin/bash
# Deterministic, CPU-bound, scripted Java workloads made of Debian packages only: nine real programs to trace and to measure,
# small programs in other languages, obfuscated or for old JVMs, to trace, and programs of very many threads or class loaders.
#
#   workloads.sh list              names, one a line
#   workloads.sh run NAME          make inputs (once), run it; its own output on stdout
#   workloads.sh cmd NAME          print the command line that run would execute
#   workloads.sh prep [NAME...]    make the inputs only (all by default)
#   workloads.sh time NAME [N]     run N times (3), print wall seconds, peak RSS and an output checksum
#   workloads.sh packages          the packages to install first
#   workloads.sh language-packages those of the programs in other languages
#
# Environment (defaults in brackets):
#   JAVA [java]            launcher to use          JAVAC [javac]   to compile the drivers
#   JAVA_OPTS_EXTRA []     extra JVM options, put first (an agent, a GC choice, ...)
#   WL_SCALE [100]         size of the work in per cent (10 = about a tenth)
#   WL_HOME [~/.cache/et-workloads]  inputs, drivers, scratch output; what lies there is run, so nobody else may have made it
#   SHARE_JAVA [/usr/share/java]  Debian's jars (point it at a folder of instrumented copies to run those)
#   WL_CLASSES []          folder with instrumented copies of the drivers' classes, used instead of WL_HOME/cls
set -euo pipefail
JAVA=${JAVA:-java}
JAVAC=${JAVAC:-javac}
WL_SCALE=${WL_SCALE:-100}
WL_HOME=${WL_HOME:-${XDG_CACHE_HOME:-${HOME:?without it, set WL_HOME}/.cache}/et-workloads}
if [ -e "$WL_HOME" ] && [ ! -O "$WL_HOME" ]; then echo "workloads.sh: $WL_HOME belongs to another user" >&2; exit 1; fi
SJ=${SHARE_JAVA:-/usr/share/java}
GNUTIME=${GNUTIME:-$(type -P time)}   # GNU time
read -r -a XOPTS <<< "${JAVA_OPTS_EXTRA:-}"
WL_BASE_OPTS=${WL_BASE_OPTS:--Xmx2g -XX:+UseSerialGC -Djava.awt.headless=true -Duser.language=en -Duser.country=US -Duser.timezone=UTC -Dfile.encoding=UTF-8}
read -r -a BOPTS <<< "$WL_BASE_OPTS"
D=$WL_HOME; IN=$D/in; CLS=${WL_CLASSES:-$D/cls}; TMP=$D/out
n() { local v=$(( $1 * WL_SCALE / 100 )); [ $v -ge 1 ] || v=1; echo $v; }
DRY=
J() { # J <args>: run java, or print it
  if [ -n "$DRY" ]; then printf '%q ' "$JAVA" ${XOPTS[@]+"${XOPTS[@]}"} "${BOPTS[@]}" "$@"; echo
  else "$JAVA" ${XOPTS[@]+"${XOPTS[@]}"} "${BOPTS[@]}" "$@"; fi; }
cp_of() { local r= j; for j; do r=$r${r:+:}$SJ/$j.jar; done; echo "$r"; }
once() { [ -s "$1" ]; }
gen() { # gen FILE < python program writing FILE's text to stdout
  mkdir -p "$IN"; local t="$1.tmp$$"; python3 - > "$t"; mv "$t" "$1"; }
driver() { # driver NAME CLASSPATH < java source: compile once
  local src="$D/src/$1.java"; mkdir -p "$D/src" "$CLS/$1"
  cat > "$src.new"
  if [ ! -f "$CLS/$1/$1.class" ] || ! cmp -s "$src" "$src.new"; then
    mv "$src.new" "$src"; "$JAVAC" -nowarn -proc:none --release 11 -d "$CLS/$1" -cp "${2:-.}" "$src" 2>/dev/null || "$JAVAC" -nowarn -proc:none -d "$CLS/$1" -cp "${2:-.}" "$src"
  else rm "$src.new"; fi; }
jdksrc() { # a fixed source set from the JDK's src.zip
  local home; home=$(dirname "$(dirname "$(readlink -f "$(command -v "$JAVAC")")")")
  local zip=${JDK_SRC_ZIP:-$home/lib/src.zip}
  [ -d "$IN/jdksrc/java.base" ] || { mkdir -p "$IN/jdksrc.$$"; (cd "$IN/jdksrc.$$"; unzip -q "$zip" 'java.base/java/util/*' 'java.base/java/text/*' 'java.base/java/math/*' 'java.base/java/time/*' 'java.xml/com/sun/org/apache/xerces/*'); mv "$IN/jdksrc.$$" "$IN/jdksrc"; }; }

# ---------------------------------------------------------------- databases
SQLRUN=SqlRun
sql_driver() { driver SqlRun <<'J'
import java.sql.*; import java.util.*;
/** SqlRun URL rows: one deterministic load/query/update mix through JDBC, single-threaded. */
public class SqlRun {
  public static void main(String[] a) throws Exception {
    String url = a[0]; int rows = Integer.parseInt(a[1]); Random r = new Random(42); long sum = 0;
    boolean hsql = url.contains("hsqldb");
    try (Connection c = DriverManager.getConnection(url)) {
      c.setAutoCommit(false);
      Statement s = c.createStatement();
      s.execute("create table cust(id int primary key, name varchar(60), region int)");
      s.execute("create table ord(id int primary key, cid int, amt decimal(12,2), note varchar(80))");
      s.execute("create index ord_cid on ord(cid)");
      try (PreparedStatement p = c.prepareStatement("insert into cust values(?,?,?)")) {
        for (int i = 0; i < rows / 10 + 1; i++) { p.setInt(1, i); p.setString(2, "name" + r.nextInt(100000)); p.setInt(3, i % 17); p.executeUpdate(); } }
      try (PreparedStatement p = c.prepareStatement("insert into ord values(?,?,?,?)")) {
        for (int i = 0; i < rows; i++) { p.setInt(1, i); p.setInt(2, r.nextInt(rows / 10 + 1)); p.setBigDecimal(3, java.math.BigDecimal.valueOf(r.nextInt(1000000), 2)); p.setString(4, "n" + Integer.toHexString(r.nextInt())); p.executeUpdate(); } }
      c.commit();
      try (ResultSet q = s.executeQuery("select c.region, count(*), sum(o.amt) from cust c join ord o on c.id=o.cid group by c.region order by 1")) {
        while (q.next()) { sum += q.getInt(2); System.out.println(q.getInt(1) + " " + q.getInt(2) + " " + q.getBigDecimal(3)); } }
      try (PreparedStatement p = c.prepareStatement("select o.id, o.note, c.name from ord o join cust c on c.id=o.cid where o.cid=? order by o.id")) {
        for (int i = 0; i < rows / 4; i++) { p.setInt(1, r.nextInt(rows / 10 + 1)); try (ResultSet q = p.executeQuery()) { while (q.next()) sum = sum * 31 + q.getInt(1) + q.getString(2).hashCode(); } } }
      try (PreparedStatement p = c.prepareStatement("update ord set amt = amt + 1.25, note = ? where id = ?")) {
        for (int i = 0; i < rows / 2; i++) { p.setString(1, "u" + i); p.setInt(2, r.nextInt(rows)); sum += p.executeUpdate(); } }
      c.commit();
      try (ResultSet q = s.executeQuery("select note, count(*) from ord where note like 'u%1' group by note order by 1")) { while (q.next()) sum = sum * 31 + q.getString(1).hashCode(); }
      s.execute("delete from ord where id < " + rows / 3); c.commit();
      try (ResultSet q = s.executeQuery("select sum(amt), count(*) from ord")) { q.next(); System.out.println(q.getBigDecimal(1) + " " + q.getInt(2)); }
      c.commit();
      System.out.println("check " + sum);
    }
  }
}
J
}
wl_h2()     { sql_driver; J -cp "$CLS/SqlRun:$(cp_of h2)" SqlRun "jdbc:h2:mem:t" $(n 120000); }

# ---------------------------------------------------------------- search
luc_driver() { driver Luc "$LUCP" <<'J'
import org.apache.lucene.analysis.standard.StandardAnalyzer; import org.apache.lucene.document.*; import org.apache.lucene.index.*;
import org.apache.lucene.search.*; import org.apache.lucene.store.*; import org.apache.lucene.util.Version; import java.util.*;
/** Luc docs queries: index generated documents into RAM (serial merges), then search. */
public class Luc {
  static String word(Random r) { int k = (int) Math.abs(r.nextGaussian() * 4000); StringBuilder b = new StringBuilder(); do { b.append((char) ('a' + k % 26)); k /= 26; } while (k > 0); return b.append("ion").toString(); }
  public static void main(String[] a) throws Exception {
    int docs = Integer.parseInt(a[0]), qs = Integer.parseInt(a[1]); Random r = new Random(7);
    RAMDirectory dir = new RAMDirectory(); StandardAnalyzer an = new StandardAnalyzer();
    IndexWriterConfig cfg = new IndexWriterConfig(Version.LATEST, an); cfg.setMergeScheduler(new SerialMergeScheduler());
    try (IndexWriter w = new IndexWriter(dir, cfg)) {
      for (int i = 0; i < docs; i++) { StringBuilder b = new StringBuilder(); for (int j = 0; j < 200; j++) b.append(word(r)).append(j % 12 == 11 ? ". " : " ");
        Document d = new Document(); d.add(new StringField("id", "" + i, Field.Store.YES)); d.add(new TextField("body", b.toString(), Field.Store.NO)); w.addDocument(d); }
      w.forceMerge(1); }
    long sum = 0;
    try (IndexReader rd = DirectoryReader.open(dir)) { IndexSearcher s = new IndexSearcher(rd); System.out.println("docs " + rd.numDocs());
      for (int i = 0; i < qs; i++) { BooleanQuery q = new BooleanQuery(); for (int j = 0; j < 3; j++) q.add(new TermQuery(new Term("body", word(r))), j == 0 ? BooleanClause.Occur.MUST : BooleanClause.Occur.SHOULD);
        TopDocs t = s.search(q, 10); sum = sum * 31 + t.totalHits; for (ScoreDoc d : t.scoreDocs) sum = sum * 31 + d.doc; } }
    System.out.println("check " + sum);
  }
}
J
}
LUCP=$(cp_of lucene-core-4.10.4 lucene-analyzers-common-4.10.4 lucene-queries-4.10.4)
wl_luindex()  { luc_driver; J -cp "$CLS/Luc:$LUCP" Luc $(n 25000) 1; }

# ---------------------------------------------------------------- XML, documents, graphics
xmlin() { XML=$IN/data-$(n 60000).xml; once "$XML" || N=$(n 60000) gen "$XML" <<'P'
import os, random
random.seed(1); n=int(os.environ['N'])
print('<?xml version="1.0"?><orders>')
for i in range(n):
    print('<order id="%d" region="r%d"><cust>c%d</cust><items>%s</items></order>' % (i, random.randrange(20), random.randrange(n//10+1), ''.join('<item sku="s%d" qty="%d" price="%.2f">text %d</item>' % (random.randrange(5000), random.randrange(1,9), random.random()*100, random.randrange(10**6)) for _ in range(random.randrange(1,5)))))
print('</orders>')
P
XSL=$IN/t.xsl; once "$XSL" || { mkdir -p "$IN"; cat > "$XSL" <<'P'
<?xml version="1.0"?><xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="html"/>
<xsl:key name="byreg" match="order" use="@region"/>
<xsl:template match="/orders"><html><body><xsl:for-each select="order[generate-id()=generate-id(key('byreg',@region)[1])]"><xsl:sort select="@region"/>
<h2><xsl:value-of select="@region"/>: <xsl:value-of select="count(key('byreg',@region))"/> <xsl:value-of select="format-number(sum(key('byreg',@region)/items/item/@price),'#.00')"/></h2>
<table><xsl:for-each select="key('byreg',@region)"><xsl:sort select="cust"/><xsl:apply-templates select="."/></xsl:for-each></table></xsl:for-each></body></html></xsl:template>
<xsl:template match="order"><tr><td><xsl:value-of select="@id"/></td><td><xsl:value-of select="cust"/></td><xsl:apply-templates select="items/item"/></tr></xsl:template>
<xsl:template match="item"><td><xsl:choose><xsl:when test="@qty &gt; 4"><b><xsl:value-of select="concat(@sku,'-',translate(.,'aeiou','AEIOU'))"/></b></xsl:when><xsl:otherwise><xsl:value-of select="substring(.,2)"/></xsl:otherwise></xsl:choose></td></xsl:template>
</xsl:stylesheet>
P
}; }
wl_xalan() { xmlin; mkdir -p "$TMP"; J -cp "$(cp_of xalan2 xercesImpl serializer xml-apis)" org.apache.xalan.xslt.Process -IN "$XML" -XSL "$XSL" -OUT "$TMP/xalan.html"; outsum "$TMP/xalan.html"; }
outsum() { [ -n "$DRY" ] || { printf 'out '; cksum < "$1"; }; }
pyin() { PY=$IN/w.py; mkdir -p "$IN"; cat > "$PY" <<'P'
import sys
n = int(sys.argv[1])
class Rec(object):
    def __init__(self, a, b): self.a = a; self.b = b
    def add(self, o): return Rec(self.a + o.a, self.b ^ o.b)
def fib(k):
    return k if k < 2 else fib(k-1) + fib(k-2)
tot = 0
for r in range(n):
    d = {}
    for i in range(2000):
        k = "k%d" % ((i * 7919 + r) % 1013)
        d.setdefault(k, []).append(Rec(i, r))
    for k in sorted(d):
        x = Rec(0, 0)
        for y in d[k]: x = x.add(y)
        tot = (tot * 31 + x.a + x.b) % 1000003
    tot += fib(12)
    s = ''.join([chr(97 + (j * r) % 26) for j in range(400)])
    tot += len(s.replace('a', 'bb').split('b'))
print(tot)
P
}
wl_jython() { pyin; J -Dpython.home=$SJ/.. -Dpython.cachedir.skip=true -Dpython.import.site=false -jar $SJ/jython.jar "$PY" $(n 900); }
javacset() { jdksrc; local k=$IN/javac-$1.lst; once "$k" || (cd "$IN/jdksrc/java.base"; find java/text java/math java/time java/util -name '*.java' | LC_ALL=C sort | sed -n "1,${1}p" | sed "s|^|$IN/jdksrc/java.base/|") > "$k"; LST=$k; }
wl_javac() { javacset $(n 80); rm -rf "$TMP/javac"; mkdir -p "$TMP/javac"; J -m jdk.compiler/com.sun.tools.javac.Main -nowarn -Xlint:none -XDignore.symbol.file -proc:none -implicit:none --patch-module java.base="$IN/jdksrc/java.base" -d "$TMP/javac" @"$LST" 2>/dev/null; [ -n "$DRY" ] || (cd "$TMP/javac"; find . -name '*.class' | wc -l); }
ECJ="eclipse-jdt-core eclipse-core-contenttype eclipse-core-jobs eclipse-core-resources eclipse-core-runtime eclipse-equinox-common eclipse-equinox-preferences eclipse-osgi eclipse-text"
wl_ecj() { jdksrc; local k=$IN/ecjsrc-$(n 420); if [ ! -d "$k" ]; then mkdir -p "$k.$$"; (cd "$IN/jdksrc/java.xml"; find com -name '*.java' | LC_ALL=C sort | sed -n "1,$(n 420)p" | while read -r f; do mkdir -p "$k.$$/$(dirname "$f")"; sed 's/com\.sun\.org\.apache\.xerces/xx.xerces/g' "$f" > "$k.$$/$f"; done); mkdir -p "$k.$$/xx"; mv "$k.$$/com/sun/org/apache/xerces" "$k.$$/xx/xerces"; rm -rf "$k.$$/com"; mv "$k.$$" "$k"; fi
  rm -rf "$TMP/ecj"; mkdir -p "$TMP/ecj"; J -cp "$(cp_of $ECJ)" org.eclipse.jdt.internal.compiler.batch.Main -nowarn -proceedOnError -source 11 -target 11 -proc:none -d "$TMP/ecj" "$k" 2>/dev/null || true; [ -n "$DRY" ] || (cd "$TMP/ecj"; find . -name '*.class' | wc -l); }
wl_antlr4() { gramin; mkdir -p "$TMP/a4"; J -cp "$(cp_of antlr4 antlr4-runtime stringtemplate4 antlr3-runtime treelayout)" org.antlr.v4.Tool -o "$TMP/a4" "$IN/G4x$(n 1000).g4" >/dev/null 2>&1; [ -n "$DRY" ] || cat "$TMP"/a4/*.java | wc -c; }
gramin() { mkdir -p "$IN"; local f=$IN/G4x$(n 1000).g4; once "$f" || N=$(n 1000) G=G4x$(n 1000) gen "$f" <<'P'
import os, random
random.seed(5); n=int(os.environ['N'])
print('grammar %s;\nprog: (r0)+ EOF;' % os.environ['G'])
for i in range(n):
    alts=[]
    for j in range(random.randrange(2,6)):
        alts.append(' '.join(random.choice(["'k%d'"%random.randrange(n), 'r%d'%random.randrange(i+1,n) if i+1<n else 'ID', 'ID','NUM',"('+' ID)*","('(' NUM ')')?"]) for _ in range(random.randrange(1,6))))
    print('r%d: %s;' % (i, "'t%d' "%i+' | '.join(alts)))
print('ID: [a-z]+; NUM: [0-9]+; WS: [ \\t\\n]+ -> skip;')
P
}
wl_math3() { driver M3 "$(cp_of commons-math3)" <<'J'
import org.apache.commons.math3.linear.*; import org.apache.commons.math3.ode.nonstiff.*; import org.apache.commons.math3.ode.*; import org.apache.commons.math3.fraction.*; import org.apache.commons.math3.stat.descriptive.*;
import java.util.*;
public class M3 { public static void main(String[] a) { int n = Integer.parseInt(a[0]); Random r = new Random(3); double acc = 0;
  for (int k = 0; k < n; k++) { double[][] m = new double[60][60]; for (double[] x : m) for (int j = 0; j < 60; j++) x[j] = r.nextGaussian(); RealMatrix q = new Array2DRowRealMatrix(m);
    acc += new LUDecomposition(q).getDeterminant() * 1e-60; acc += new SingularValueDecomposition(q).getNorm();
    BigFraction f = BigFraction.ONE; for (int i = 1; i < 60; i++) f = f.add(new BigFraction(1, i + k % 5)); acc += f.doubleValue();
    DescriptiveStatistics d = new DescriptiveStatistics(); for (int i = 0; i < 2000; i++) d.addValue(r.nextDouble()); acc += d.getPercentile(90);
    double[] y = {0, 1}; new DormandPrince853Integrator(1e-8, 1, 1e-9, 1e-9).integrate(new FirstOrderDifferentialEquations() { public int getDimension() { return 2; } public void computeDerivatives(double t, double[] u, double[] v) { v[0] = u[1]; v[1] = -u[0]; } }, 0, y, 20, y); acc += y[0]; }
  System.out.printf("check %.6f%n", acc); } }
J
  J -cp "$CLS/M3:$(cp_of commons-math3)" M3 $(n 1300); }
TOMCP=$(cp_of tomcat10-embed-core tomcat10-embed-el tomcat10-embed-jasper jakarta-annotation-api tomcat10-juli)
wl_tomcat() { driver Tom "$TOMCP" <<'J'
import org.apache.catalina.startup.Tomcat; import org.apache.catalina.Context; import jakarta.servlet.http.*; import java.io.*; import java.net.*; import java.util.logging.*; import java.util.*;
/** One embedded Tomcat and one client thread over the loopback address: a fixed number of requests, one after another. */
public class Tom { public static void main(String[] a) throws Exception { LogManager.getLogManager().reset(); Tomcat t = new Tomcat(); t.setBaseDir(a[1]); t.setHostname("127.0.0.1"); t.setPort(0); t.getConnector().setProperty("address", "127.0.0.1"); t.getConnector().setProperty("maxThreads", "1"); t.getConnector().setProperty("minSpareThreads", "1"); t.getConnector().setProperty("maxKeepAliveRequests", "-1"); Context c = t.addContext("", new File(a[1]).getAbsolutePath());
  Tomcat.addServlet(c, "s", new HttpServlet() { protected void doGet(HttpServletRequest q, HttpServletResponse p) throws IOException { HttpSession s = q.getSession(true); int k = Integer.parseInt(q.getParameter("k")); StringBuilder b = new StringBuilder(); TreeMap<String, Integer> m = new TreeMap<>(); for (int i = 0; i < 200; i++) m.merge("w" + (i * k) % 97, i, Integer::sum); b.append(m); s.setAttribute("m" + k % 10, m); p.setContentType("text/plain"); p.getWriter().print(b); } }); c.addServletMappingDecoded("/", "s"); t.start(); int port = t.getConnector().getLocalPort(); long h = 0; String ck = null;
  for (int i = 0; i < Integer.parseInt(a[0]); i++) { HttpURLConnection u = (HttpURLConnection) new URL("http://127.0.0.1:" + port + "/?k=" + i).openConnection(); if (ck != null && i % 100 != 0) u.setRequestProperty("Cookie", ck); String sc; try (InputStream in = u.getInputStream()) { h = h * 31 + new String(in.readAllBytes()).hashCode(); } sc = u.getHeaderField("Set-Cookie"); if (sc != null) ck = sc.substring(0, sc.indexOf(';')); } System.out.println("check " + h); t.stop(); t.destroy(); System.exit(0); } }
J
  mkdir -p "$TMP/tom"; J -cp "$CLS/Tom:$TOMCP" Tom $(n 15000) "$TMP/tom"; }

# Not one of the nine: the same server with as many threads on each side as there are clients, each with its own cookies.
wl_tomcat_threads() { driver TomThreads "$TOMCP" <<'J'
import org.apache.catalina.startup.Tomcat; import org.apache.catalina.Context; import jakarta.servlet.http.*; import java.io.*; import java.net.*; import java.util.logging.*; import java.util.*; import java.util.concurrent.*;
/** TomThreads requests folder threads: one embedded Tomcat, several client threads; the check does not depend on who comes first. */
public class TomThreads { public static void main(String[] a) throws Exception { int threads = Integer.parseInt(a[2]), requests = Integer.parseInt(a[0]) / threads; LogManager.getLogManager().reset(); Tomcat t = new Tomcat(); t.setBaseDir(a[1]); t.setHostname("127.0.0.1"); t.setPort(0); t.getConnector().setProperty("address", "127.0.0.1"); t.getConnector().setProperty("maxThreads", a[2]); t.getConnector().setProperty("minSpareThreads", a[2]); t.getConnector().setProperty("maxKeepAliveRequests", "-1"); Context c = t.addContext("", new File(a[1]).getAbsolutePath());
  Tomcat.addServlet(c, "s", new HttpServlet() { protected void doGet(HttpServletRequest q, HttpServletResponse p) throws IOException { HttpSession s = q.getSession(true); int k = Integer.parseInt(q.getParameter("k")); StringBuilder b = new StringBuilder(); TreeMap<String, Integer> m = new TreeMap<>(); for (int i = 0; i < 200; i++) m.merge("w" + (i * k) % 97, i, Integer::sum); b.append(m); s.setAttribute("m" + k % 10, m); p.setContentType("text/plain"); p.getWriter().print(b); } }); c.addServletMappingDecoded("/", "s"); t.start(); int port = t.getConnector().getLocalPort();
  ExecutorService pool = Executors.newFixedThreadPool(threads); List<Future<Long>> clients = new ArrayList<>();
  for (int n = 0; n < threads; n++) { int first = n * requests; clients.add(pool.submit(() -> { long h = 0; String ck = null;
    for (int i = first; i < first + requests; i++) { HttpURLConnection u = (HttpURLConnection) new URL("http://127.0.0.1:" + port + "/?k=" + i).openConnection(); if (ck != null && i % 100 != 0) u.setRequestProperty("Cookie", ck); String sc; try (InputStream in = u.getInputStream()) { h = h * 31 + new String(in.readAllBytes()).hashCode(); } sc = u.getHeaderField("Set-Cookie"); if (sc != null) ck = sc.substring(0, sc.indexOf(';')); } return h; })); }
  long h = 0; for (Future<Long> client : clients) h = h * 31 + client.get(); System.out.println("check " + h); pool.shutdown(); t.stop(); t.destroy(); System.exit(0); } }
J
  mkdir -p "$TMP/tomt"; J -cp "$CLS/TomThreads:$TOMCP" TomThreads $(n 15000) "$TMP/tomt" 8; }

# ---------------------------------------------------------------- other languages, and code that javac does not write
LANGS=$(cd "$(dirname "${BASH_SOURCE[0]}")/languages"; pwd)
JARS=/usr/share/java   # what compilers need: never the instrumented copies
toolhome() { dirname "$(dirname "$(readlink -f "$(command -v "$JAVAC")")")"; }
T() { "$(toolhome)/bin/java" -Xmx1g -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "$@"; }   # a compiler, on the JDK of JAVAC
compiled() { # compiled NAME SOURCE COMMAND...: make cls/NAME, a folder of classes or a jar, unless it is of this very SOURCE
  local name=$1 source=$LANGS/$2 seen=$D/src/$1-$2; shift 2
  if [ "$CLS" = "$D/cls" ] && ! { [ -e "$CLS/$name" ] && cmp -s "$source" "$seen"; }; then
    mkdir -p "$D/src" "$CLS"; rm -rf "${CLS:?}/$name"; "$@" "$CLS/$name" "$source" >&2; cp "$source" "$seen"; fi; }
KOTLIN="kotlin-stdlib kotlinx-coroutines-core atomicfu"
kotlinc() { JAVACMD=$(toolhome)/bin/java JAVA_OPTS="-Xmx1g -XX:+UseSerialGC -XX:TieredStopAtLevel=1" command kotlinc -nowarn -cp $JARS/kotlinx-coroutines-core.jar -d "$1" "$2"; }
wl_kotlin() { compiled WordsKt Words.kt kotlinc; J -cp "$CLS/WordsKt:$(cp_of $KOTLIN)" WordsKt $(n 3000); }
scalac() { mkdir -p "$1"; T -cp $JARS/scala-compiler.jar:$JARS/scala-reflect.jar:$JARS/scala-library.jar scala.tools.nsc.Main -usejavacp -nowarn -d "$1" "$2"; }
wl_scala() { compiled Words Words.scala scalac; J -cp "$CLS/Words:$(cp_of scala-library)" Words $(n 3000); }
wl_groovy() { J -cp "$(cp_of groovy-all)" groovy.ui.GroovyMain "$LANGS/words.groovy" $(n 3000); }
wl_clojure() { J -cp "$(cp_of clojure)" clojure.main "$LANGS/words.clj" $(n 3000); }
wl_jruby() { J -Djruby.home=/usr/share/jruby -Xss2m -jar "$SJ/jruby-core.jar" --disable-gems --disable-did_you_mean "$LANGS/words.rb" $(n 3000) 2>/dev/null; }
wl_saxon() { xmlin; mkdir -p "$TMP"; J -cp "$(cp_of Saxon-HE)" net.sf.saxon.Transform "-s:$XML" "-xsl:$XSL" "-o:$TMP/saxon.html"; outsum "$TMP/saxon.html"; }
# The Kotlin program and its libraries in one jar, shrunk, optimised and obfuscated. ProGuard reads no class file newer than
# Java 13's: it gets the interface of JDK 11, as the JDK keeps it for `javac --release 11`.
guard() { kotlinc "$D/src/guarded" "$2"; JDK=$(toolhome) gen "$D/src/jdk11.jar" <<'P'
import os, sys, zipfile
symbols = zipfile.ZipFile(os.environ['JDK'] + '/lib/ct.sym')
with zipfile.ZipFile(sys.stdout.buffer, 'w') as jar:
    for name in sorted(symbols.namelist()):
        releases, _, rest = name.partition('/')
        module, _, path = rest.partition('/')
        if 'B' in releases and '-' not in releases and module == 'java.base' and path.endswith('.sig') and path != 'module-info.sig':
            old = symbols.read(name)
            jar.writestr(path[:-4] + '.class', old[:6] + b'\0\x37' + old[8:])
P
  local jar in=(-injars "$D/src/guarded(**.class)"); for jar in $KOTLIN; do in+=(-injars "$JARS/$jar.jar(**.class)"); done
  T -Xss4m -jar $JARS/proguard.jar "${in[@]}" -outjars "$1" -libraryjars "$D/src/jdk11.jar" @"$LANGS/guarded.pro"; }
wl_proguard() { compiled Guarded.jar Words.kt guard; J -cp "$CLS/Guarded.jar" WordsKt $(n 3000); }
old() { T -cp "$(SJ=$JARS; cp_of $ECJ)" org.eclipse.jdt.internal.compiler.batch.Main -source 1.3 -target 1.1 -nowarn -proc:none -cp "$D/src" -d "$1" "$2"; }
wl_java1() { compiled Old Old.java old; J -cp "$CLS/Old" Old $(n 3000); }

# ---------------------------------------------------------------- very many threads and class loaders, for `cargo xtask reading`
CROWDS=$(cd "$(dirname "${BASH_SOURCE[0]}")/java/crowds"; pwd)
crowd() { driver "$1" < "$CROWDS/$1.java"; J -cp "$CLS/$1" "$@"; }
wl_threads() { crowd Threads platform $(n 100000) 8; }
wl_virtual_threads() { crowd Threads virtual $(n 1000000) 100; }
wl_loaders() { crowd Loaders unloaded $(n 10000); }
wl_loaders_kept() { crowd Loaders kept $(n 10000); }

names() { declare -F | sed -n 's/^declare -f wl_//p' | LC_ALL=C sort; }
case "${1:-}" in
  list) names ;;
  run) mkdir -p "$D"; "wl_$2" ;;
  cmd) mkdir -p "$D"; DRY=1; "wl_$2" ;;
  prep) mkdir -p "$D"; shift; DRY=1; for w in ${*:-$(names)}; do "wl_$w" > /dev/null; done ;;
  time) mkdir -p "$D"; DRY=1 "$0" prep "$2" 2>/dev/null || true
        for i in $(seq "${3:-3}"); do "$GNUTIME" -f '%e %M %U' -o "$D/t.$$" "$0" run "$2" > "$D/o.$$" 2> "$D/e.$$" && rc=0 || rc=$?
          echo "$2 wall_s=$(tail -1 "$D/t.$$" | cut -d' ' -f1) rss_kb=$(tail -1 "$D/t.$$" | cut -d' ' -f2) user_s=$(tail -1 "$D/t.$$" | cut -d' ' -f3) rc=$rc out=$(grep -v '^Loading Agent' "$D/o.$$" | cksum | cut -d' ' -f1)"; done; rm -f "$D/t.$$" "$D/o.$$" "$D/e.$$" ;;
  packages) echo "openjdk-17-jdk-headless openjdk-17-source libh2-java liblucene4.10-java libxalan2-java jython ecj libecj-java antlr4 libcommons-math3-java libtomcat10-embed-java libjakarta-annotation-api-java unzip time python3" ;;
  language-packages) echo "clojure groovy jruby kotlin libkotlinx-coroutines-java libkotlinx-atomicfu-java scala libproguard-java libeclipse-jdt-core-java libsaxonhe-java python3" ;;
  *) sed -n '2,20p' "$0"; exit 2 ;;
esac
