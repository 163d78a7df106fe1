//! A JVM whose generator of identity hashes starts from another value.
//!
//! With `-XX:hashCode=0`, hashes come from a sequence ([`et_names::hashes`]) that every process starts at [`SEED`].
//! Objects in a class data sharing archive keep the hashes from the process that dumped it; if that process starts
//! [`DISTANCE`] steps earlier in the sequence, a run will reach them only after nearly the whole period. No option sets
//! the seed, so the dump uses a copy of libjvm with another value in the word that contains it.

use std::fs;
use std::path::{Path, PathBuf};

use et_names::hashes::{SEED, before};

use crate::files::FileError;

/// More than a dump draws, which is some ten thousand for symbols and hashes together.
const DISTANCE: u32 = 1 << 24;

/// A libjvm with the moved seed in the place of a JDK's own, which is back when this goes.
#[derive(Debug)]
pub struct MovedSeed {
    library: PathBuf,
    own: PathBuf,
}

impl MovedSeed {
    /// `None` if the seed is not found in the library; nothing is written then.
    pub fn in_jdk(home: &Path) -> Result<Option<Self>, FileError> {
        let library = home.join("lib/server/libjvm.so");
        let mut bytes = fs::read(&library).map_err(FileError::at("read", &library))?;
        let Some(at) = place_of_seed(&bytes) else { return Ok(None) };
        bytes[at..at + 4].copy_from_slice(&before(SEED, DISTANCE).to_le_bytes());
        // Renamed, not copied: it may be a hard link to the original.
        let own = library.with_extension("so.own");
        fs::rename(&library, &own).map_err(FileError::at("rename", &library))?;
        let moved = Self { library, own };
        fs::write(&moved.library, &bytes).map_err(FileError::at("write", &moved.library))?;
        Ok(Some(moved))
    }
}

impl Drop for MovedSeed {
    fn drop(&mut self) {
        // Where that fails the JVM works as well, from another seed.
        let _ = fs::rename(&self.own, &self.library);
    }
}

/// Offset of the seed in the library's data; `None` unless exactly one word contains it.
fn place_of_seed(library: &[u8]) -> Option<usize> {
    let mut places = writable(library)?
        .into_iter()
        .flat_map(|(start, part)| part.chunks_exact(4).enumerate().map(move |(index, word)| (start + 4 * index, word)))
        .filter_map(|(at, word)| (word == SEED.to_le_bytes()).then_some(at));
    places.next().filter(|_| places.next().is_none())
}

/// Writable segments of a 64-bit little-endian ELF file, with their offsets; `None` if the file is not one.
fn writable(library: &[u8]) -> Option<Vec<(usize, &[u8])>> {
    const IDENT: &[u8] = b"\x7fELF\x02\x01";
    const LOAD: u32 = 1;
    const WRITE: u32 = 2;
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let mut raw = [0; 8];
        raw[..bytes].copy_from_slice(library.get(at..at.checked_add(bytes)?)?);
        Some(u64::from_le_bytes(raw))
    };
    library.starts_with(IDENT).then_some(())?;
    let (table, size, count) = (number(32, 8)? as usize, number(54, 2)? as usize, number(56, 2)? as usize);
    let mut parts = Vec::new();
    for index in 0..count {
        let header = table.checked_add(index * size)?;
        let (kind, flags) = (number(header, 4)? as u32, number(header + 4, 4)? as u32);
        if kind == LOAD && flags & WRITE != 0 {
            let (start, bytes) = (number(header + 8, 8)? as usize, number(header + 32, 8)? as usize);
            // Words are aligned in memory, and the pages of a file are in the same way.
            let aligned = start.checked_next_multiple_of(4)?;
            parts.push((aligned, library.get(aligned..start.checked_add(bytes)?)?));
        }
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one segment that is executed and one that is written to, which holds `words`.
    fn library(words: &[u32]) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(64, 0);
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 2;
        let code = SEED.to_le_bytes();
        for (flags, start, length) in [(5u32, 64 + 112, 4), (6, 64 + 112 + 4, 4 * words.len())] {
            let header = bytes.len();
            bytes.resize(header + 56, 0);
            bytes[header] = 1;
            bytes[header + 4..header + 8].copy_from_slice(&flags.to_le_bytes());
            bytes[header + 8..header + 16].copy_from_slice(&(start as u64).to_le_bytes());
            bytes[header + 32..header + 40].copy_from_slice(&(length as u64).to_le_bytes());
        }
        bytes.extend(code);
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes
    }

    #[test]
    fn the_seed_is_looked_for_in_data_and_must_be_the_only_one() {
        assert_eq!(place_of_seed(&library(&[7, SEED, 9])), Some(64 + 112 + 8));
        assert_eq!(place_of_seed(&library(&[7, 8, 9])), None);
        assert_eq!(place_of_seed(&library(&[SEED, 8, SEED])), None);
        assert_eq!(place_of_seed(&library(&[7, SEED])[..186]), None);
        assert_eq!((place_of_seed(b"MZ"), place_of_seed(b"")), (None, None));
    }

    #[test]
    fn the_own_library_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lib/server/libjvm.so");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let own = library(&[SEED]);
        fs::write(&path, &own).unwrap();
        let moved = MovedSeed::in_jdk(folder.path()).unwrap().unwrap();
        let there = fs::read(&path).unwrap();
        assert_eq!(there[there.len() - 4..], before(SEED, DISTANCE).to_le_bytes());
        assert_eq!(there[..there.len() - 4], own[..own.len() - 4]);
        drop(moved);
        assert_eq!(fs::read(&path).unwrap(), own);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
