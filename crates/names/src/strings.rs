//! Strings by handle: a names table repeats its strings a great deal.

use rustc_hash::FxHashMap;

/// A string of a [`StringTable`]; equal handles of one table mean equal strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Str(pub u32);

/// A length or number of things in a table, of which it holds 32 bits. Whoever makes a table has less than 4 GiB of classes in
/// memory at once; one that did not must not lose a bit in silence.
pub(crate) fn length(length: usize) -> u32 {
    u32::try_from(length).expect("a names table has less than 4 GiB of anything")
}

/// Interned strings; handle 0 is the empty string.
#[derive(Clone, Debug)]
pub struct StringTable {
    text: String,
    ends: Vec<u32>,
    index: FxHashMap<Box<str>, Str>,
}

impl Default for StringTable {
    fn default() -> Self {
        let mut table = Self { text: String::new(), ends: Vec::new(), index: FxHashMap::default() };
        table.intern("");
        table
    }
}

impl StringTable {
    /// The handle of `text`, which is added if it is new.
    pub fn intern(&mut self, text: &str) -> Str {
        if let Some(&known) = self.index.get(text) {
            return known;
        }
        let handle = self.push(text);
        self.index.insert(text.into(), handle);
        handle
    }

    /// Adds a string that the caller knows to be new, without indexing it (used when decoding).
    pub(crate) fn push(&mut self, text: &str) -> Str {
        let handle = Str(length(self.ends.len()));
        self.text.push_str(text);
        self.ends.push(length(self.text.len()));
        handle
    }

    /// Adds a string that may be there already, for tables whose index is gone.
    pub(crate) fn add(&mut self, text: &str) -> Str {
        if self.index.is_empty() { self.push(text) } else { self.intern(text) }
    }

    pub(crate) fn without_index() -> Self {
        Self { text: String::new(), ends: Vec::new(), index: FxHashMap::default() }
    }

    /// The string behind a handle of this table.
    pub fn get(&self, handle: Str) -> &str {
        let at = handle.0 as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.text[start..self.ends[at] as usize]
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no string, not even the empty one.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All strings in order of their handles.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|at| self.get(Str(at as u32)))
    }
}
