//! Where in a method a frame is: known from the hooks in the code that the VM has.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use et_jvm::profiling::RawFrame;
use et_rewriter::hooks::stacks::{Called, TrackedCode, constant_of};
use rustc_hash::FxHashMap;

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a method without hooks for stacks.
    Untracked,
    /// At a site: its id, what it adds to the value of the method's caller, and what is called there.
    Site { site: u32, adds: u64, called: Called },
    /// At another place of a method whose sites begin there: the VM has called something. `nearest` is the site that comes next in its code, or
    /// else the last one, and what that adds.
    Elsewhere { first_site: u32, sites: u32, nearest: (u32, u64) },
}

impl Place {
    /// The site that stands for the frame, and what it adds: at no site, the nearest.
    pub fn shown(self) -> Option<(u32, u64)> {
        match self {
            Self::Untracked => None,
            Self::Site { site, adds, .. } | Self::Elsewhere { nearest: (site, adds), .. } => Some((site, adds)),
        }
    }
}

/// Methods by their ids. The VM never uses the id of a method for another one.
#[derive(Debug, Default)]
pub struct Methods {
    known: FxHashMap<usize, Option<TrackedCode>>,
    recent: Recent,
    pools: Pools,
    have_changed: bool,
}

/// Places of frames that were asked for lately: each frame has one entry where it may be.
#[derive(Debug, Default)]
struct Recent(Vec<Option<(RawFrame, Place)>>);

impl Recent {
    const BITS: u32 = 12;

    fn entry(&mut self, frame: RawFrame) -> &mut Option<(RawFrame, Place)> {
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        // Without stacks there are none.
        if self.0.is_empty() {
            self.0.resize(1 << Self::BITS, None);
        }
        let key = (frame.method as u64).wrapping_add((frame.location as u64) << 32);
        &mut self.0[(key.wrapping_mul(SPREAD) >> (64 - Self::BITS)) as usize]
    }
}

/// The constant pools of the last classes, by the identity hashes of their mirrors: the VM takes longer to tell one than a method is read.
/// If two classes had the same hash, their methods would not fit the values of stacks, which is noticed.
#[derive(Debug, Default)]
pub struct Pools(FxHashMap<u32, Arc<[u8]>>);

/// Constant pools that are known at a time.
const MOST_POOLS: usize = 256;

impl Pools {
    /// The pool of a class, `read` at its first method.
    pub fn of(&mut self, class: u32, read: impl FnOnce() -> Option<Vec<u8>>) -> Option<Arc<[u8]>> {
        if let Some(pool) = self.0.get(&class) {
            return Some(pool.clone());
        }
        let pool: Arc<[u8]> = read()?.into();
        if self.0.len() >= MOST_POOLS {
            self.0.clear();
        }
        self.0.insert(class, pool.clone());
        Some(pool)
    }
}

/// Methods that are known at a time: programs may make classes for ever.
const MOST: usize = 1 << 18;

impl Methods {
    /// Forgets what is known, if that may be another code than the VM has now. Returns whether it may.
    pub fn forget_changed(&mut self) -> bool {
        let may_differ = self.have_changed;
        if may_differ {
            self.clear();
        }
        may_differ
    }

    /// From now on methods may get another code: nobody says when the VM uses it.
    pub fn change(&mut self) {
        self.clear();
        self.have_changed = true;
    }

    fn clear(&mut self) {
        self.known.clear();
        self.recent.0.fill(None);
        self.pools.0.clear();
    }

    /// Where a frame is; `read` returns what the method's code tells.
    pub fn place(&mut self, frame: RawFrame, read: impl FnOnce(&mut Pools) -> Option<TrackedCode>) -> Place {
        if let Some((_, place)) = self.recent.entry(frame).filter(|(known, _)| *known == frame) {
            return place;
        }
        let place = self.place_in_code(frame, read);
        *self.recent.entry(frame) = Some((frame, place));
        place
    }

    fn place_in_code(&mut self, frame: RawFrame, read: impl FnOnce(&mut Pools) -> Option<TrackedCode>) -> Place {
        if self.known.len() >= MOST {
            self.clear();
        }
        let code = match self.known.entry(frame.method as usize) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(read(&mut self.pools)),
        };
        let Some(code) = code else { return Place::Untracked };
        let at_index = |index: u32| {
            let adds = constant_of(code.first_site).wrapping_add(index.into());
            (code.first_site.wrapping_add(index), adds)
        };
        match u32::try_from(frame.location).ok().and_then(|at| code.call_at(at)) {
            Some(call) => {
                let (site, adds) = at_index(call.index);
                Place::Site { site, adds, called: call.called }
            }
            None => {
                let sites = code.calls.iter().map(|call| call.index + 1).max().unwrap_or(0);
                let at = u32::try_from(frame.location).unwrap_or(0);
                let next = code.calls.partition_point(|call| call.pc < at);
                let nearest = code.calls.get(next).or(code.calls.last()).map_or(0, |call| call.index);
                Place::Elsewhere { first_site: code.first_site, sites, nearest: at_index(nearest) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use et_rewriter::hooks::stacks::TrackedCall;

    use super::*;

    #[test]
    fn where_a_frame_is_is_known_until_methods_change() {
        let mut methods = Methods::default();
        let frame = |location| RawFrame { method: ptr::dangling_mut::<u64>().cast(), location };
        let code = |first_site| {
            let calls = vec![TrackedCall { pc: 7, index: 2, called: Called::Other }];
            move |_: &mut Pools| Some(TrackedCode { first_site, calls })
        };
        let site = |place| match place {
            Place::Site { site, .. } => Some(site),
            _ => None,
        };
        assert_eq!(site(methods.place(frame(7), code(100))), Some(102));
        assert_eq!(site(methods.place(frame(7), |_| panic!("it is known"))), Some(102));
        assert_eq!(site(methods.place(frame(8), |_| panic!("its code is known"))), None);
        methods.change();
        assert_eq!(site(methods.place(frame(7), code(200))), Some(202));
        assert!(methods.forget_changed());
        assert_eq!(site(methods.place(frame(7), code(300))), Some(302));
    }
}
