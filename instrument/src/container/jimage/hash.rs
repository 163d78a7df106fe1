//! The perfect hash that finds a location by its name.

const MULTIPLIER: u32 = 0x0100_0193;

/// Continues a hash over `bytes`. Kept to 31 bits at the end, as Java's ints are.
pub fn hash(name: &[u8], seed: u32) -> u32 {
    name.iter().fold(seed, |hash, byte| hash.wrapping_mul(MULTIPLIER) ^ u32::from(*byte)) & 0x7fff_ffff
}

/// The seed of the first look-up.
pub const FIRST_SEED: u32 = MULTIPLIER;

/// The redirect table and, for each slot, the index of its name.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Per bucket: below 0 `-1 - slot`, above 0 the seed to hash with again, 0 nothing is there.
    pub redirect: Vec<i32>,
    /// Index of the name in each slot.
    pub order: Vec<u32>,
}

/// Maximum number of bytes hashed in a search: the sum of a constant and a multiple of the names' length. JDKs need a
/// few tens of the latter.
const MOST_WORK: (usize, usize) = (1 << 24, 256);

/// A slot without a name.
const FREE: u32 = u32::MAX;

/// A table of as many slots as names. `None` if two names are the same or no seed is found.
pub fn build(names: &[Vec<u8>]) -> Option<Table> {
    let length = names.len() as u32;
    let mut buckets: Vec<Vec<u32>> = vec![Vec::new(); names.len()];
    for (index, name) in names.iter().enumerate() {
        buckets[(hash(name, FIRST_SEED) % length) as usize].push(index as u32);
    }
    // Large buckets first, while there is room. The sort is stable, so the table is the same each time.
    let mut by_size: Vec<usize> = (0..buckets.len()).filter(|bucket| !buckets[*bucket].is_empty()).collect();
    by_size.sort_by_key(|bucket| std::cmp::Reverse(buckets[*bucket].len()));

    let mut table = Table { redirect: vec![0; names.len()], order: vec![FREE; names.len()] };
    let mut work = MOST_WORK.0 + MOST_WORK.1 * names.iter().map(Vec::len).sum::<usize>();
    let mut free = 0;
    for bucket in by_size {
        let members = &buckets[bucket];
        if let [only] = members[..] {
            while table.order[free] != FREE {
                free += 1;
            }
            table.order[free] = only;
            table.redirect[bucket] = -1 - free as i32;
            continue;
        }
        let seed = free_seed(members, names, &table.order, &mut work)?;
        for index in members {
            table.order[(hash(&names[*index as usize], seed) % length) as usize] = *index;
        }
        table.redirect[bucket] = seed as i32;
    }
    Some(table)
}

/// The first seed that maps each of `members` to a free slot of its own. `work` is the number of bytes that may still
/// be hashed.
fn free_seed(members: &[u32], names: &[Vec<u8>], order: &[u32], work: &mut usize) -> Option<u32> {
    let mut slots = Vec::with_capacity(members.len());
    for seed in 1..i32::MAX as u32 {
        slots.clear();
        for index in members {
            let name = &names[*index as usize];
            *work = work.checked_sub(name.len() + 16)?;
            let slot = hash(name, seed) % order.len() as u32;
            if order[slot as usize] != FREE || slots.contains(&slot) {
                break;
            }
            slots.push(slot);
        }
        if slots.len() == members.len() {
            return Some(seed);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_its_slot() {
        let names: Vec<Vec<u8>> =
            (0..5000).map(|index| format!("/java.base/a/b/C{index}.class").into_bytes()).collect();
        let table = build(&names).unwrap();
        for (index, name) in names.iter().enumerate() {
            let length = names.len() as u32;
            let slot = match table.redirect[(hash(name, FIRST_SEED) % length) as usize] {
                direct if direct < 0 => (-1 - direct) as u32,
                0 => panic!("not there"),
                seed => hash(name, seed as u32) % length,
            };
            assert_eq!(table.order[slot as usize], index as u32);
        }
    }

    #[test]
    fn a_name_that_is_there_twice_has_no_table() {
        assert_eq!(build(&[b"/a/b".to_vec(), b"/a/b".to_vec()]), None);
    }

    /// Found by the fuzzer: a bucket had so many members that no seed could separate them.
    #[test]
    fn a_search_that_leads_nowhere_ends() {
        let in_bucket_0 = |name: &Vec<u8>| hash(name, FIRST_SEED).is_multiple_of(300);
        let names: Vec<Vec<u8>> =
            (0..).map(|index| format!("/{index:0100}").into_bytes()).filter(in_bucket_0).take(300).collect();
        let started = std::time::Instant::now();
        assert_eq!(build(&names), None);
        assert!(started.elapsed() < std::time::Duration::from_secs(10));
    }
}
