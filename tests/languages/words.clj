;; Clojure: lazy sequences, atoms, refs, agents, protocols, records, multimethods, macros, transducers, and eval.
(ns words (:require [clojure.string :as string] [clojure.set :as set]))
(set! *warn-on-reflection* false)

(def n (Integer/parseInt (first *command-line-args*)))
(defprotocol Shape (area [this]) (describe [this prefix]))
(defrecord Circle [radius] Shape (area [_] (* 355/113 radius radius)) (describe [_ prefix] (str prefix " circle " radius)))
(deftype Box [^long w ^:unsynchronized-mutable h] Shape (area [_] (* w h)) (describe [this prefix] (set! h (inc h)) (format "%s box %d %d" prefix w h)))
(extend-protocol Shape nil (area [_] 0) (describe [_ _] "nothing") String (area [s] (count s)) (describe [s p] (str p s)))
(defmulti price (fn [item & _] (:kind item)))
(defmethod price :book [{:keys [pages]}] (* 2 pages))
(defmethod price :default [item & more] (count (str item more)))
(defmacro unless [test & body] `(if ~test :no (do ~@body)))
(defmacro timed-out [& forms] `(vector ~@(map (fn [form] `(try ~form (catch ArithmeticException e# (.getMessage e#)) (finally nil))) forms)))

(def primes ((fn sieve [s] (lazy-seq (cons (first s) (sieve (remove #(zero? (mod % (first s))) (rest s)))))) (iterate inc 2)))
(defn collatz [^long n] (loop [n n steps 0] (if (= n 1) steps (recur (if (even? n) (quot n 2) (inc (* 3 n))) (inc steps)))))
(def ways (memoize (fn [a b] (if (or (zero? a) (zero? b)) 1 (+ (ways (dec a) b) (ways a (dec b)))))))

(let [shapes (map #(case (int (mod % 4)) 0 (->Circle %) 1 (Box. % 3) 2 "text" nil) (range n))]
  (println (reduce + (map area shapes)) (mapv #(describe % "a") (take 5 shapes)))
  (println (into (sorted-map) (map (fn [[k v]] [(if k (.getSimpleName ^Class k) "nil") (count v)])) (group-by class shapes))))
(println (price {:kind :book :pages n}) (price {:kind :pen} 1 2) (unless false 1 2) (timed-out (/ n 0) (/ n 7) (quot n 0)))
(println (nth primes (quot n 12)) (take 5 (drop-while #(< % 40) primes)) (ways 12 13))
(println (transduce (comp (filter odd?) (map collatz) (partition-by even?) (map count)) + 0 (range 1 n)))
(let [words (map #(Integer/toString (mod (* % 7919) 331) 36) (range (* 4 n)))]
  (println (take 3 (sort-by (juxt (comp - val) key) (frequencies words))) (count (set/difference (set words) #{"a" "b"})))
  (println (string/join "," (take 4 (dedupe (map string/upper-case words)))) (string/replace "a-b-c" #"-(\w)" (fn [[_ c]] (str "<" c ">")))))
(let [account (ref 0) log (atom []) agents (mapv agent (range 6))]
  (run! deref (doall (map (fn [i] (future (dotimes [_ 20] (dosync (alter account + i) (commute account inc))))) (range 8))))
  (add-watch log :count (fn [_ _ old new] (when (zero? (mod (count new) 50)) (alter-meta! log assoc :seen (count new)))))
  (dotimes [i n] (swap! log conj i))
  (doseq [a agents] (send a * 3) (send-off a inc)) (apply await agents)
  (println @account (count @log) (meta log) (map deref agents)))
(println (reduce + (map #((eval `(fn [~'x] (let [y# (* ~'x ~%)] (reduce + (for [i# (range y#) :when (odd? i#)] (* i# ~(inc %))))))) 3) (range (+ 3 (quot n 40))))))
(println (eval (read-string "(do (defrecord Made [a b]) (let [m (->Made 1 {:c [2 3]})] (pr-str (update-in (assoc m :d 4) [:b :c 1] inc))))")))
(let [it (reify java.util.Comparator (compare [_ a b] (compare b a)) Object (toString [_] "downwards"))]
  (println (str it) (sort it [3 1 2]) (.call ^Callable (proxy [Object Callable] [] (call [] (proxy-super toString) "proxied")))))
(println (try (throw (ex-info "refused" {:code n})) (catch clojure.lang.ExceptionInfo e [(ex-message e) (ex-data e)])))
(println (loop [m (transient {}) i 0] (if (< i n) (recur (assoc! m (mod i 97) i) (inc i)) (reduce-kv (fn [s k v] (+ s (* k v))) 0 (persistent! m)))))
(println (reductions (fn [a b] (if (> a 100) (reduced :done) (+ a b))) (range 30)) (pr-str (zipmap [:a :b] (partition-all 2 (range 3)))) (trampoline (fn f [k] (if (pos? k) #(f (dec k)) :landed)) n))
(println (apply + (pmap collatz (range 1 (quot n 2)))) @(delay 7) (let [p (promise)] (future (deliver p 8)) @p))
(shutdown-agents)
