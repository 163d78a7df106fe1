//! Interned strings: the same strings occur in a names table again and again.

use rustc_hash::FxHashMap;

/// Handle of a string in a [`StringTable`]. Within one table, equal handles mean equal strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Str(pub u32);

/// Converts a length or count to the 32 bits that a table has for it. Panics if it does not fit: that takes 4 GiB of
/// classes in memory at once, and truncation would damage the table.
pub(crate) fn length(length: usize) -> u32 {
    u32::try_from(length).expect("a names table has less than 4 GiB of anything")
}

/// A table of interned strings; handle 0 is the empty string.
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
    /// Returns the handle of `text`, after adding it if necessary.
    pub fn intern(&mut self, text: &str) -> Str {
        if let Some(&known) = self.index.get(text) {
            return known;
        }
        let handle = self.push(text);
        self.index.insert(text.into(), handle);
        handle
    }

    /// Adds a string without indexing it; the caller knows that it is new. Used when decoding.
    pub(crate) fn push(&mut self, text: &str) -> Str {
        let handle = Str(length(self.ends.len()));
        self.text.push_str(text);
        self.ends.push(length(self.text.len()));
        handle
    }

    /// Returns the handle of `text` after adding it if necessary, in tables whose index has been dropped.
    pub(crate) fn add(&mut self, text: &str) -> Str {
        if self.index.is_empty() { self.push(text) } else { self.intern(text) }
    }

    pub(crate) fn without_index() -> Self {
        Self { text: String::new(), ends: Vec::new(), index: FxHashMap::default() }
    }

    /// Returns the string of a handle from this table. Panics for other handles.
    pub fn get(&self, handle: Str) -> &str {
        let at = handle.0 as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.text[start..self.ends[at] as usize]
    }

    /// Number of strings, including the empty one.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All strings, ordered by handle.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|at| self.get(Str(at as u32)))
    }
}
