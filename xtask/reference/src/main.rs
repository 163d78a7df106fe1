//! `et-reference`: used by `cargo xtask dist` and `cargo xtask docs`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use et_reference::{completions, docs, man};

/// Writes what is generated from the code that takes the options.
#[derive(Parser)]
enum Cli {
    /// Man pages and completions for shells, as they are laid out below share
    Share {
        /// The folder to fill
        folder: PathBuf,
    },
    /// The tables of options in docs
    Docs {
        /// The root of the repository
        repo: PathBuf,
    },
}

fn main() -> Result<()> {
    match Cli::parse() {
        Cli::Share { folder } => {
            man::write(&folder)?;
            completions::write(&folder)
        }
        Cli::Docs { repo } => docs::write(&repo),
    }
}
