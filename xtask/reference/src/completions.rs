//! Shell completions.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap_complete::{Shell, generate};

/// The shells, and the directories below `share` in which they look for completions.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/site-functions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];

/// Writes the completions of all tools below `share`.
pub fn write(share: &Path) -> Result<()> {
    for (shell, place) in SHELLS {
        let folder = share.join(place);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for mut tool in crate::tools() {
            let name = tool.get_name().to_owned();
            let mut script = Vec::new();
            generate(shell, &mut tool, &name, &mut script);
            let script =
                String::from_utf8(script).with_context(|| format!("the completions of {name} are not text"))?;
            let script = match shell {
                Shell::Bash => with_one_name(&script, &name),
                Shell::Zsh => with_inputs(script, &name)?,
                _ => script,
            };
            let file = folder.join(file_name(shell, &name));
            fs::write(&file, script).with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    Ok(())
}

/// clap_complete 4.6 writes the hyphen in a tool's name in one way where it determines the subcommand of a line, and in
/// another where it completes the subcommand's arguments, so that nothing would be completed after a subcommand.
fn with_one_name(script: &str, tool: &str) -> String {
    let [told, asked] = ["__", "__subcmd__"].map(|hyphen| format!("{}__subcmd__", tool.replace('-', hyphen)));
    script.replace(&asked, &told)
}

/// If a tool takes either a subcommand or inputs, clap_complete 4.6 makes zsh look for the subcommand after an input.
/// Here the first word is either; after one that is not a subcommand, options and more inputs follow.
fn with_inputs(script: String, tool: &str) -> Result<String> {
    let commands = format!("\":: :_{tool}_commands\" \\\n");
    let Some(at) = script.find(&commands) else { return Ok(script) };
    let before = &script[..at];
    let Some(input) = before.trim_end().rfind('\n').map(|end| end + 1) else { return Ok(script) };
    if !before[input..].starts_with("':") {
        return Ok(script);
    }
    let unknown = || format!("clap_complete writes other completions than it did: look at those of {tool} for zsh");
    const START: &str = "_arguments \"${_arguments_options[@]}\" : \\\n";
    const END: &str = "        esac\n    ;;\nesac\n}\n";
    let options = before.find(START).map(|start| &before[start..input]).with_context(unknown)?;
    let script = format!("{}{}", &script[..input], &script[at..]).replace("$line[2]", "$line[1]");
    let end = script.find(END).with_context(unknown)?;
    let otherwise = format!("(*)\n{options}'*: :_files' \\\n&& ret=0\n;;\n");
    let script = format!("{}{otherwise}{}", &script[..end], &script[end..]);
    let described = format!("_describe -t commands '{tool} commands' commands \"$@\"\n");
    if !script.contains(&described) {
        anyhow::bail!("{}", unknown());
    }
    Ok(script.replace(&described, &format!("{described}    _files\n")))
}

/// File name under which a shell finds the completions of a command.
fn file_name(shell: Shell, tool: &str) -> String {
    match shell {
        Shell::Zsh => format!("_{tool}"),
        Shell::Fish => format!("{tool}.fish"),
        _ => tool.to_owned(),
    }
}
