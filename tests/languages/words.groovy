// Groovy: closures, GStrings, builders, traits, categories, run-time meta-programming, scripts compiled while it runs.
import groovy.transform.*

@Immutable class Point { int x, y; Point plus(Point o) { new Point(x + o.x, y + o.y) } }
@Canonical class Word { String text; int count = 0 }
trait Greets { String name; String greet() { "hello, $name" } }
trait Shouts extends Greets { String greet() { super.greet().toUpperCase() + '!' } }
class Person implements Greets, Shouts { def methodMissing(String name, args) { "$name${args.toList()}" }; def propertyMissing(String name) { name.reverse() } }
class Twice { static twice(String self) { self * 2 } }
@CompileStatic class Fast { static long collatz(long n) { long steps = 0; while (n != 1L) { n = (n & 1L) == 0L ? n.intdiv(2).longValue() : 3L * n + 1L; steps++ }; steps } }
class Refused extends RuntimeException { Refused(String message) { super(message) } }

int n = args[0] as int
println((1..n).collect { new Point(it, it % 7) }.inject { a, b -> a + b })
def words = (1..n * 3).collect { Integer.toString(it * 7919 % 331, 36) }.groupBy { it }.collect { k, v -> new Word(k, v.size()) }
println words.sort { a, b -> b.count <=> a.count ?: a.text <=> b.text }.take(3)
def person = new Person(name: 'world')
println "${person.greet()} ${person.wave(1, 'two')} ${person.olleh} ${-> n * 2}"
use(Twice) { println 'tick'.twice() }
Integer.metaClass.getTripled = { -> delegate * 3 }; println 14.tripled
String.metaClass.shout = { -> delegate.toUpperCase() }; println 'loud'.shout()
def curried = { a, b, c = 5 -> a * b + c }.curry(3); println curried(4) + (curried >> { it * 2 })(1)
def fib; fib = { it < 2 ? it : fib(it - 1) + fib(it - 2) }.memoize(); println fib(60)
def made = (0..<n.intdiv(20) + 3).collect { Eval.x(it, "def f = { y -> x * y + $it }; [1, 2, 3].collect(f).sum()") }
println "${made.sum()} ${made.last()}"
def shell = new GroovyShell(new Binding(limit: n))
println shell.evaluate('''
class Queue2 { private items = []; def leftShift(x) { items << x; this }; def each(Closure c) { items.each(c) }; int size() { items.size() } }
def q = new Queue2(); (1..limit).each { q << it ** 2 }
int odd = 0; q.each { if (it % 2) odd++ }
"${q.size()} in the queue, $odd odd"
''')
def refused = 0, total = 0
(1..n).each { i -> try { if (i % 6 == 0) throw new Refused("six $i"); total += 100.intdiv(i % 5) } catch (Refused e) { refused++ } catch (ArithmeticException e) { total -= 1 } finally { total++ } }
println "$refused refused, $total"
println new groovy.json.JsonBuilder().with { it.html { p 'text'; b(size: 3.5) { i([1, n]) } }; it.toString() }
println((1..20).collect { i -> Thread.start { synchronized (words) { words << new Word("t$i", -i) } } }*.join().size() + words*.count.findAll { it < 0 }.sum())
println((1..n).sum { Fast.collatz(it) } + " " + [[1, [2, 3]], [4]].flatten() + ' ' + (words*.text as Set).size() + [a: 1, b: [c: 2]].with { "$a${b?.c}${it.d?.e}" })
@TupleConstructor class Node2 { def value, left, right; def walk(Closure c) { left?.walk(c); c(value); right?.walk(c) }; def insert(v) { if (v < value) left ? left.insert(v) : (left = new Node2(v)) else right ? right.insert(v) : (right = new Node2(v)) } }
def root = new Node2(500); (1..n).each { root.insert(it * 7919 % 1000) }; def walked = []; root.walk { walked << it }; println "${walked.size()} ${walked[0..4]} ${walked == walked.sort(false)}"
switch (n) { case 0..10: println 'small'; break; case { it % 2 == 0 }: println 'even'; break; case Integer: println 'number'; break }
println '2024-01-31'.replaceAll(/(\d+)-(\d+)-(\d+)/) { all, y, m, d -> "$d.$m.$y" } + ('groovy' =~ /o+/)[0] + (1.1 + 2.2 == 3.3) + 10G.pow(30)
