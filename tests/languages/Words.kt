// Kotlin: data and sealed classes, delegates, inline functions, sequences, coroutines.
import kotlinx.coroutines.*
import kotlinx.coroutines.channels.*
import kotlin.properties.Delegates

sealed class Shape {
    abstract val area: Double
    data class Circle(val radius: Double) : Shape() { override val area get() = Math.PI * radius * radius }
    data class Box(val width: Double, val height: Double = width) : Shape() { override val area get() = width * height }
    object Nothing : Shape() { override val area = 0.0 }
}

fun describe(shape: Shape) = when (shape) {
    is Shape.Circle -> "circle of ${shape.radius}"
    is Shape.Box -> { val (w, h) = shape; if (w == h) "square of $w" else "box of $w by $h" }
    Shape.Nothing -> "nothing"
}

class TooBig(val size: Int) : RuntimeException("$size is too big")

class Account(private val log: MutableList<String>) : MutableList<String> by log {
    var balance: Int by Delegates.observable(0) { property, old, new -> add("${property.name}: $old to $new") }
    val lazily: String by lazy { "made after ${log.size}" }
    companion object { const val LIMIT = 900; inline fun <reified T> kind(x: Any?) = if (x is T) T::class.java.simpleName else "no" }
}

inline fun <T> guarded(block: () -> T): String = try { "${block()}" } catch (e: TooBig) { "refused ${e.size}" } finally { guards++ }
var guards = 0

tailrec fun gcd(a: Int, b: Int): Int = if (b == 0) a else gcd(b, a % b)
operator fun Shape.plus(other: Shape) = area + other.area

fun primes() = sequence {
    var candidates = generateSequence(2) { it + 1 }.iterator()
    val found = ArrayList<Int>()
    while (true) {
        val next = candidates.next()
        if (found.takeWhile { it * it <= next }.none { next % it == 0 }) { found += next; yield(next) }
    }
}

suspend fun pipeline(scope: CoroutineScope, count: Int): Long {
    val numbers = Channel<Int>(4)
    scope.launch { for (i in 1..count) numbers.send(i); numbers.close() }
    val squares = scope.produce { for (n in numbers) { if (n % 50 == 0) delay(1); send(n.toLong() * n) } }
    var sum = 0L
    for (square in squares) sum = (sum * 31 + square) % 1_000_003
    return sum
}

fun main(args: Array<String>) {
    val n = args[0].toInt()
    val shapes = (1..n).map { when (it % 3) { 0 -> Shape.Nothing; 1 -> Shape.Circle(it / 7.0); else -> Shape.Box(it.toDouble(), if (it % 2 == 0) it.toDouble() else 3.0) } }
    val groups = shapes.groupBy { describe(it).substringBefore(' ') }.toSortedMap()
    groups.forEach { (name, them) -> println("$name: ${them.size} of ${"%.3f".format(them.sumByDouble { it.area })}, e.g. ${describe(them.last())}") }
    println(shapes.zipWithNext { a, b -> a + b }.max()!!.let { "%.4f".format(it) })
    val account = Account(mutableListOf())
    val refused = (0 until n).map { guarded { if (it * 13 % 1000 > Account.LIMIT) throw TooBig(it) else { account.balance += it; it } } }.count { it.startsWith("refused") }
    println("$refused refused of $guards, ${account.size} lines, ${account.lazily}, ${account.last()}, ${Account.kind<String>("")}, ${Account.kind<Int>("")}")
    println(primes().filter { it % 10 == 7 }.take(n / 40 + 3).map { it.toString(16) }.joinToString(limit = 5) + " gcd ${gcd(n * 12, 144)}")
    val words = generateSequence(1L) { it * 6364136223846793005L + 1442695040888963407L }.map { java.lang.Long.toString(Math.abs(it % 400), 36) }.take(n * 4)
    println(words.groupingBy { it }.eachCount().entries.sortedWith(compareByDescending<Map.Entry<String, Int>> { it.value }.thenBy { it.key }).take(4))
    runBlocking {
        println("pipeline " + pipeline(this, n))
        println("async " + (1..20).map { async(Dispatchers.Default) { primes().take(n / 10 + it).last() } }.awaitAll())
        val failed = GlobalScope.async { delay(2); check(n < 0) { "n is $n" } }
        println(try { failed.await() } catch (e: IllegalStateException) { "failed: ${e.message}" })
        println(withTimeoutOrNull(5) { while (true) delay(1) } ?: "timed out")
        val job = launch { try { delay(60_000) } finally { withContext(NonCancellable) { yield(); println("cancelled") } } }
        yield(); job.cancelAndJoin()
    }
    val bound = shapes::size; val method: (Shape) -> String = ::describe
    println("${bound.get()} ${method(shapes[0])} ${Shape.Circle::class.java.declaredConstructors.size}")
}
