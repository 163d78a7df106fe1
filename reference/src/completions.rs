//! Completions for shells.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap_complete::{Shell, generate};

/// The shells, and where each looks for completions below `share`.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/site-functions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];

/// Writes those of both tools below `share`.
pub fn write(share: &Path) -> Result<()> {
    for (shell, place) in SHELLS {
        let folder = share.join(place);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for mut tool in crate::tools() {
            let name = tool.get_name().to_owned();
            let mut script = Vec::new();
            generate(shell, &mut tool, &name, &mut script);
            let file = folder.join(file_name(shell, &name));
            fs::write(&file, script).with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    Ok(())
}

/// What a shell finds the completions of a command by.
fn file_name(shell: Shell, tool: &str) -> String {
    match shell {
        Shell::Zsh => format!("_{tool}"),
        Shell::Fish => format!("{tool}.fish"),
        _ => tool.to_owned(),
    }
}
