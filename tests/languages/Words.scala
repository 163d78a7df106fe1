// Scala: case classes, traits, pattern matching, implicits, lazy streams, futures, parallel collections, actors of its own.
import scala.collection.{immutable, mutable}
import scala.concurrent.{Await, Future, Promise}
import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration._
import scala.language.{implicitConversions, reflectiveCalls}
import scala.util.{Failure, Success, Try}
import scala.util.control.{Breaks, NonFatal}

sealed trait Expr
case class Num(value: BigInt) extends Expr
case class Var(name: Symbol) extends Expr
case class Op(sign: Char, left: Expr, right: Expr) extends Expr

trait Counted { var counted = 0; abstract override def toString = { counted += 1; s"${super.toString}#$counted" } }
trait Named { def name: String; override def toString = name }
class Thing(val name: String) extends Named
object Thing { def apply(name: String) = new Thing(name) with Counted; def unapply(thing: Thing) = Some(thing.name) }

object Words {
  implicit class Rich(val left: Expr) extends AnyVal { def +(right: Expr) = Op('+', left, right); def *(right: Expr) = Op('*', left, right) }
  implicit def number(value: Int): Expr = Num(value)

  def simple(expr: Expr): Expr = expr match {
    case Op('+', Num(a), Num(b)) => Num(a + b)
    case Op('*', Num(a), _) if a == 0 => Num(0)
    case Op('*', Num(a), right) if a == 1 => simple(right)
    case Op('*', Num(a), Num(b)) => Num(a * b)
    case Op(sign, left, right) => val small = Op(sign, simple(left), simple(right)); if (small == expr) expr else simple(small)
    case other => other
  }
  def show(expr: Expr): String = expr match {
    case Num(value) => value.toString
    case Var(name) => name.name
    case Op(sign, left, right) => s"(${show(left)}$sign${show(right)})"
  }

  lazy val fibs: Stream[BigInt] = BigInt(0) #:: BigInt(1) #:: fibs.zip(fibs.tail).map { case (a, b) => a + b }
  def using[A <: { def close(): Unit }, B](resource: A)(f: A => B): B = try f(resource) finally resource.close()
  class Log { val lines = mutable.ListBuffer[String](); def close(): Unit = lines += "closed" }
  @annotation.tailrec def collatz(n: Long, steps: Int = 0): Int = if (n == 1) steps else collatz(if (n % 2 == 0) n / 2 else 3 * n + 1, steps + 1)

  def main(args: Array[String]): Unit = {
    val n = args(0).toInt
    val exprs = for (i <- 1 to n; j = i % 7; if j != 3) yield (Var(Symbol("v" + i % 5)): Expr) * j + (i: Expr) * (j + 1) + 2
    println(exprs.map(simple).map(show).groupBy(identity).mapValues(_.size).toSeq.sorted.take(3))
    println(f"fib ${fibs(n / 4 + 20)}%s ${fibs.takeWhile(_ < 1000).filter(_ % 2 == 0).toList} ${math.Pi}%.5f")
    val log = new Log
    println(using(log) { l => l.lines ++= Seq("a", "b"); l.lines.mkString("<", "|", ">") } + log.lines.last)
    val things = Vector.tabulate(n)(i => Thing("t" + i % 11))
    val Thing(first) = things(4); println(first + things.map(_.toString).toSet.toSeq.sorted.take(3) + things.map(_.toString).last)
    val outcomes = (1 to n).map(i => Try(if (i % 9 == 0) sys.error("nine " + i) else 1000 / (i % 10)))
    println(outcomes.collect { case Success(value) => value }.sum + " " + outcomes.collect { case Failure(e: ArithmeticException) => e.getMessage }.size + " " + outcomes.collectFirst { case Failure(NonFatal(e)) => e.toString })
    val breaks = new Breaks; import breaks._
    var steps = 0; breakable { for (i <- Iterator.from(1)) { steps += collatz(i); if (steps > n * 40) break } }; println(steps)
    println((1 to n * 3).par.map(collatz(_)).filter(_ % 2 == 1).sum)
    val promise = Promise[Int]()
    val futures = Future.sequence((1 to 30).map(i => Future(fibs(i * 3)).map(_ % 1009)))
    val all = for (list <- futures; extra <- promise.future) yield list.sum + extra
    promise.success(5); println(Await.result(all, 60.seconds))
    println(Await.result(Future[Int](throw new IllegalStateException("lost")).recover { case e => -e.getMessage.length }, 60.seconds))
    val map = (1 to n).foldLeft(immutable.HashMap[String, List[Int]]()) { (m, i) => val k = java.lang.Integer.toString(i * 7919 % 311, 36); m + (k -> (i :: m.getOrElse(k, Nil))) }
    println(map.toSeq.sortBy { case (k, v) => (-v.size, k) }.take(3).map { case (k, v) => k -> v.take(3) })
    val memo = mutable.Map[(Int, Int), Long](); def ways(a: Int, b: Int): Long = memo.getOrElseUpdate((a, b), if (a == 0 || b == 0) 1 else ways(a - 1, b) + ways(a, b - 1))
    println(ways(14, 15) + " " + memo.size + " " + List(1, 2, 3).permutations.map(_.mkString).mkString(",") + " " + "a1b22".collect { case c if c.isDigit => c.asDigit }.sum)
    def curried(a: Int)(b: => Int)(implicit c: Ordering[Int]) = c.compare(a, b); println(curried(3)(n))
    println(things.view.map(_.name).zipWithIndex.collect { case (s, i) if i % 100 == 99 => s * 2 }.force)
  }
}
