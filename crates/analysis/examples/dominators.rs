//! Measures the time and memory that dominators and retained sizes of a large heap take: `cargo run --release -p
//! et-analysis --example dominators -- 10000000`
//!
//! The heap is synthetic: half of the objects are in a tree of collections as in real programs, an eighth in one long
//! list with back references, and a tenth of all have an additional reference to a random object.

use std::time::Instant;

use et_analysis::heap::dominators::Roots;
use et_analysis::heap::{Dominance, Graph};

/// A generator of numbers (xorshift) that are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % u64::from(bound.max(1))) as u32
    }
}

fn main() {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(10_000_000u32);
    let mut numbers = Numbers(88_172_645_463_325_252);
    let mut graph = Graph::with_capacity(count as usize, 3 * count as usize);
    let (list, tree) = (count / 8, count - count / 8);
    for node in 0..count {
        if node < list {
            graph.edge(0, (node + 1).min(list - 1));
            graph.edge(1, node.saturating_sub(1));
            // Contents of the list.
            graph.edge(2, list + numbers.below(tree));
        } else {
            let place = node - list;
            for child in [2 * place + 1, 2 * place + 2].into_iter().filter(|&child| child < tree) {
                graph.edge(child, list + child);
            }
        }
        if numbers.below(10) == 0 {
            graph.edge(9, numbers.below(count));
        }
        graph.end_node();
    }
    [0, list - 1, list].into_iter().for_each(|root| graph.edge(0, root));
    graph.end_node();
    let before = Instant::now();
    let dominance = Dominance::of(&graph, Roots::of(&graph), |_| 24);
    println!(
        "{count} objects, {} references: {:.2} s, {} of them at the top, {} bytes retained in all",
        graph.edges(),
        before.elapsed().as_secs_f64(),
        dominance.children.of(graph.root()).count(),
        dominance.retained[graph.root() as usize],
    );
    // Linux says how much memory there was at the most.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter(|line| line.starts_with("VmHWM")).for_each(|line| println!("{line}"));
}
