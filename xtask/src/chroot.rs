//! Runs commands in a root folder of their own, as a container does, without Docker: a script mounts what the root needs in a mount
//! namespace, and calls `chroot` there. Nothing of it is left when it ends.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Result, ensure};

use crate::command::quoted;

/// Why this system cannot do that.
pub fn obstacle() -> Option<String> {
    let unshared = Command::new("unshare").args(["--mount", "true"]).stdin(Stdio::null()).output();
    let is_able = unshared.is_ok_and(|done| done.status.success());
    (!is_able).then(|| "no mount namespace can be made here, which takes root".to_owned())
}

/// A root folder and what is done in it, step by step.
#[derive(Clone, Debug)]
pub struct Chroot {
    /// Lines of the script so far; they are carried out in the root folder.
    script: String,
}

impl Chroot {
    /// With `/dev` and `/proc`, for which it must have folders.
    pub fn new(root: &Path) -> Self {
        let root = quoted(root.as_os_str());
        let script = format!(
            "set -e\nmount --make-rprivate /\nmount --bind {root} {root}\ncd {root}\n\
             mount --bind /dev dev\nmount -t proc proc proc || mount --rbind /proc proc\n"
        );
        Self { script }
    }

    /// A line of shell.
    pub fn line(&mut self, line: &str) -> &mut Self {
        self.script += line;
        self.script.push('\n');
        self
    }

    /// Mounts a folder at a path of the root, where there must be one.
    pub fn bind(&mut self, from: &Path, to: &str) -> &mut Self {
        self.line(&format!("mount --bind {} .{to}", quoted(from.as_os_str())))
    }

    /// Likewise, but nobody can write to it.
    pub fn bind_read_only(&mut self, from: &Path, to: &str) -> &mut Self {
        self.line(&format!("mount --bind -o ro {} .{to}", quoted(from.as_os_str())))
    }

    /// A `/tmp` in memory, of this many megabytes.
    pub fn tmp(&mut self, megabytes: u32) -> &mut Self {
        self.line(&format!("mount -t tmpfs -o size={megabytes}m,mode=1777 tmpfs tmp"))
    }

    /// From here on nothing can be written but what is mounted in it.
    pub fn read_only(&mut self) -> &mut Self {
        self.line("mount -o remount,bind,ro .")
    }

    /// A command line of shell in the root, with these variables (`NAME=value …`, quoted for a shell) and no others.
    pub fn as_root(&mut self, variables: &str, line: &str) -> &mut Self {
        self.line(&format!("chroot . env -i {variables} sh -c {}", quoted(line.as_ref())))
    }

    /// Likewise, as a user by number.
    pub fn as_user(&mut self, user: u32, variables: &str, line: &str) -> &mut Self {
        self.line(&format!("chroot --userspec={user}:{user} . env -i {variables} sh -c {}", quoted(line.as_ref())))
    }

    /// Carries it out; says what it has printed.
    pub fn output(&self) -> Result<(String, String)> {
        let Output { status, stdout, stderr } = self.command().stdin(Stdio::null()).output()?;
        let (out, err) = (String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned());
        ensure!(status.success(), "{status}: {out}{err}\n{}", self.script);
        Ok((out, err))
    }

    /// Carries it out; the user sees what it prints.
    pub fn run(&self) -> Result<()> {
        let status = self.command().stdin(Stdio::null()).status()?;
        ensure!(status.success(), "{status} of\n{}", self.script);
        Ok(())
    }

    fn command(&self) -> Command {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "sh", "-c", &self.script]);
        unshare
    }
}
