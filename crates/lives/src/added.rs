//! Tables that are added to the folder of a life table when they are first needed.

use std::fs::File;
use std::io;

use et_columns::{Table, Written};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::folder::{self, TableFile};
use crate::stamp::Stamp;
use crate::{LifeTable, tables};

/// Tables that are added together.
pub struct Added<const N: usize> {
    /// File with what is known of them, named by the version of what their rows mean.
    pub kept: &'static str,
    /// Their files.
    pub names: [&'static str; N],
    pub tables: [&'static Table; N],
}

impl<const N: usize> Added<N> {
    fn columns(&self) -> String {
        format!("{:016x}", tables::schemas(&self.tables))
    }
}

/// What is kept of the files, which the manifest does not have: they are made later, or never.
#[derive(Debug, Serialize, Deserialize)]
struct Kept<M> {
    /// XXH3 of the schemas.
    columns: String,
    files: Vec<TableFile>,
    /// The state of the files when they were last found intact.
    stamps: Vec<Option<Stamp>>,
    /// What the rows alone do not tell.
    meanings: M,
}

/// The files that are kept, if they are intact, and what their rows do not tell.
pub fn open<M: Serialize + DeserializeOwned, const N: usize>(
    lives: &LifeTable,
    added: &Added<N>,
) -> Option<([File; N], M)> {
    let folder = lives.folder()?;
    let mut kept: Kept<M> = serde_json::from_slice(&lives.kept(added.kept)?).ok()?;
    if kept.columns != added.columns() || kept.files.len() != N {
        return None;
    }
    let paths = added.names.map(|name| folder.join(name));
    let stamps: Vec<Option<Stamp>> = paths.iter().map(|path| Stamp::of(path)).collect();
    let files: Vec<File> = if stamps == kept.stamps && stamps.iter().all(Option::is_some) {
        paths.iter().map(|path| File::open(path).ok()).collect::<Option<_>>()?
    } else {
        // The folder may have been copied.
        let files = kept.files.iter().map(|file| folder::open_as(folder, file).ok()).collect::<Option<_>>()?;
        kept.stamps = stamps;
        put(lives, added.kept, &kept);
        files
    };
    Some((files.try_into().ok()?, kept.meanings))
}

/// Keeps tables with the life table, unless its folder belongs to others.
pub fn keep<M: Serialize, const N: usize>(
    lives: &LifeTable,
    added: &Added<N>,
    written: [&Written; N],
    meanings: &M,
) -> io::Result<()> {
    let Some(folder) = lives.folder() else { return Ok(()) };
    for (name, written) in added.names.into_iter().zip(written) {
        if !folder::add(folder, name, written)? {
            return Ok(());
        }
    }
    let files = added.names.into_iter().zip(written).map(|(name, written)| folder::entry(name, written)).collect();
    let stamps = added.names.iter().map(|name| Stamp::of(&folder.join(name))).collect();
    put(lives, added.kept, &Kept { columns: added.columns(), files, stamps, meanings });
    Ok(())
}

/// Makes tables: in the folder of the life table, which keeps them, or in temporary files if there is none, or no room in it. The inner
/// error is that of the files. `what`: what is not kept, as the note says it.
pub fn make<T, E>(
    lives: Option<&LifeTable>,
    what: &str,
    make: impl Fn(&dyn Fn() -> io::Result<File>) -> Result<io::Result<T>, E>,
    keep: impl Fn(&LifeTable, &T) -> io::Result<()>,
) -> Result<io::Result<T>, E> {
    if let Some(lives) = lives.filter(|lives| lives.manifest().is_some())
        && let Some(folder) = lives.folder()
    {
        match make(&|| folder::nameless(folder))? {
            Ok(made) => {
                if let Err(error) = keep(lives, &made) {
                    lives.is_not_kept(what, &error);
                }
                return Ok(Ok(made));
            }
            // There may be room for it elsewhere.
            Err(error) => lives.is_not_kept(what, &error),
        }
    }
    make(&tempfile::tempfile)
}

fn put<M: Serialize>(lives: &LifeTable, name: &str, kept: &Kept<M>) {
    if let Ok(text) = serde_json::to_vec(kept) {
        lives.keep(name, &text);
    }
}
