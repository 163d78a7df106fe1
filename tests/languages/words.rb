# Ruby: blocks, structs, mixins, method_missing, eval, fibers, threads, lazy enumerators, exceptions, catch and throw.
require 'set'
n = Integer(ARGV[0])
Point = Struct.new(:x, :y) do
  include Comparable
  def <=>(other); to_a <=> other.to_a; end
  def +(other); Point.new(x + other.x, y + other.y); end
end
module Loud; def greet; super.upcase + '!'; end; end
class Person
  prepend Loud
  attr_accessor :name
  def initialize(name); @name = name; end
  def greet; "hello, #{name}"; end
  def method_missing(name, *args, &block); name.to_s.start_with?('do_') ? "#{name}#{args}#{block && block.call(2)}" : super; end
  def respond_to_missing?(name, all = false); name.to_s.start_with?('do_') || super; end
  %w[walk run].each { |verb| define_method(verb) { |far = 1| "#{verb} #{far}" } }
end
class Refused < StandardError; def initialize(i); super("refused #{i}"); @i = i; end; attr_reader :i; end
class Tree
  include Enumerable
  def initialize; @root = nil; end
  def insert(v); node = [v, nil, nil]; if @root.nil? then @root = node else at = @root; loop { side = v < at[0] ? 1 : 2; if at[side] then at = at[side] else at[side] = node; break end } end; self; end
  def each(&block); walk(@root, &block); end
  def walk(node, &block); return unless node; walk(node[1], &block); block.call(node[0]); walk(node[2], &block); end
end

points = (1..n).map { |i| Point.new(i, i % 7) }
puts points.inject(:+).inspect, points.max.inspect, points.minmax_by { |p| [p.y, -p.x] }.inspect
words = (1..n * 3).map { |i| (i * 7919 % 331).to_s(36) }
puts words.each_with_object(Hash.new(0)) { |w, h| h[w] += 1 }.sort_by { |w, c| [-c, w] }.first(4).inspect
person = Person.new('world')
puts person.greet, person.do_it(1, :two) { |x| x * 3 }, person.run(5), person.respond_to?(:do_that)
begin; person.fly; rescue NoMethodError => e; puts e.class; end
total = 0
(1..n).each do |i|
  begin
    raise Refused.new(i) if i % 9 == 0
    total += 100 / (i % 5)
  rescue ZeroDivisionError then total -= 1
  rescue Refused => e then total += e.i
  else total += 2
  ensure total += 1
  end
end
puts total
puts (0..n / 20 + 3).map { |i| eval("lambda { |x| [1, 2, 3].map { |y| x * y + #{i} }.sum }").call(i) }.sum
Person.class_eval("def made#{n % 3}; binding.local_variable_set(:z, 4); @name * 2; end"); puts person.send("made#{n % 3}")
person.instance_eval { def self.alone; "only #{@name}"; end }; puts person.singleton_methods.inspect, person.alone
fib = Fiber.new { a, b = 0, 1; loop { Fiber.yield a; a, b = b, a + b } }
puts (1..40).map { fib.resume }.last
primes = Enumerator.new { |y| found = []; (2..Float::INFINITY).each { |i| if found.take_while { |p| p * p <= i }.none? { |p| i % p == 0 } then found << i; y << i end } }
puts primes.lazy.select { |p| p % 10 == 7 }.map { |p| p.to_s(2) }.first(n / 50 + 2).last
queue = Queue.new; results = Queue.new
workers = 4.times.map { Thread.new { while (job = queue.pop) != :stop; results << job ** 2; end } }
(1..n).each { |i| queue << i }; 4.times { queue << :stop }; workers.each(&:join)
puts results.size, Array.new(results.size) { results.pop }.sum
puts catch(:found) { (1..n).each { |i| (1..i).each { |j| throw :found, [i, j] if i * j > n } }; nil }.inspect
tree = n.times.inject(Tree.new) { |t, i| t.insert(i * 7919 % 1000) }
puts tree.first(5).inspect, tree.each_slice(7).count, tree.include?(7), tree.sort == tree.to_a, tree.each_cons(2).all? { |a, b| a <= b }
puts "%05.2f|%-6s|%x" % [n / 7.0, 'ab', 255], 'a-b_c'.tr('-_', '  ').split.map(&:capitalize).join, 'x1y22'.gsub(/\d+/) { |m| (m.to_i * 2).to_s }, :sym.to_proc.call('ab') rescue puts 'no method'
puts 2 ** 200, (2 ** 64).to_s.reverse.to_i.digits.sum, Rational(3, 4) + 1, Set.new(words).size, [3, [1, [2]]].flatten.sort { |a, b| b <=> a }.inspect
counter = 0; add = proc { |k| counter += k }; [1, 2, 3].each(&add); puts counter, add.curry.arity, [[1, 2], [3, 4]].to_h { |k, v| [k, v * counter] }
puts ObjectSpace.respond_to?(:garbage_collect), Class.new(Person) { def greet; 'sub ' + super; end }.new('x').greet, Marshal.load(Marshal.dump([1, 'two', { three: 3.0 }])).inspect
