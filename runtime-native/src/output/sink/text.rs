//! Writes a text directly: `et-trace text` gets the blocks of the trace through a pipe, and writes when they end.
//!
//! If the program is killed or halts, the pipe is closed too: the text is still written, including the events left in
//! the buffer file, which is unnamed and vanishes with the last process that has it open.
#![allow(unsafe_code, reason = "a file that a child process inherits")]

use std::fs::{self, File};
use std::io::{self, Seek};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use et_format::buffers::OPEN_VARIABLE;

use super::error::{SinkError, ended, how, slow};
use crate::base::patience::{self, Patience};
use crate::options::Text;

/// The program that makes the text.
const TOOL: &str = "et-trace";
/// Its places relative to the runtime's library: a link in a JDK copy, and the installed program.
const BESIDE: [&str; 2] = [TOOL, "../../bin/et-trace"];
/// Exit codes with a reason reported by the tool itself (bad input, a trace cut off, missing events), or without need
/// of a report: the reader of the text has stopped reading.
const EXPLAINED: [i32; 4] = [1, 3, 4, 141];

/// Destination of a text.
#[derive(Debug)]
pub enum TextTo {
    /// A file, open and locked, with its old content until the tool starts.
    File(File, PathBuf),
    /// A shell command.
    Command(String),
}

/// The tool that makes the text, and its options.
#[derive(Debug)]
pub struct Maker {
    tool: PathBuf,
    text: Text,
}

impl Maker {
    /// Finds the tool.
    pub fn find(text: &Text) -> Result<Self, SinkError> {
        let tool = match &text.tool {
            Some(given) if is_program(given) => given.clone(),
            Some(given) => return Err(SinkError::Tool { why: format!("{} is no program", given.display()) }),
            None => find().ok_or_else(|| SinkError::Tool { why: "it was not found".into() })?,
        };
        Ok(Self { tool, text: text.clone() })
    }
}

/// Passes the blocks of a trace to the tool, which is started with the first.
#[derive(Debug)]
pub struct TextOutput {
    maker: Maker,
    to: TextTo,
    patience: Arc<Patience>,
    /// The buffer file.
    buffers: Option<File>,
    running: Option<Running>,
    has_started: bool,
}

#[derive(Debug)]
struct Running {
    tool: Child,
    command: Option<Child>,
}

impl TextOutput {
    /// The tool is started with the first bytes.
    pub fn new(maker: Maker, to: TextTo, patience: Arc<Patience>) -> Self {
        Self { maker, to, patience, buffers: None, running: None, has_started: false }
    }

    /// Sets the buffer file, which the tool will inherit.
    pub fn hand_over(&mut self, buffers: Option<File>) {
        self.buffers = buffers;
    }

    /// Destination of the text.
    pub fn to(&self) -> &TextTo {
        &self.to
    }

    /// Passes bytes to the tool.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let running = match &mut self.running {
            Some(running) => running,
            None => {
                let running = self.start()?;
                self.has_started = true;
                self.running.insert(running)
            }
        };
        let pipe = running.tool.stdin.as_mut();
        pipe.map_or_else(|| Err(io::ErrorKind::BrokenPipe.into()), |pipe| self.patience.write(pipe, bytes))
    }

    /// Whether another process has truncated the text.
    pub fn check(&self) -> Result<(), SinkError> {
        let TextTo::File(file, path) = &self.to else { return Ok(()) };
        // The file offset, which the tool shares. Queried before the file size, because the file only grows.
        let at = (&mut &*file).stream_position();
        let is_spoilt =
            self.has_started && file.metadata().is_ok_and(|meta| meta.is_file() && at.is_ok_and(|at| meta.len() < at));
        if is_spoilt { Err(SinkError::Spoilt { path: path.clone() }) } else { Ok(()) }
    }

    fn start(&self) -> io::Result<Running> {
        let Maker { tool, text } = &self.maker;
        let mut tool = Command::new(tool);
        tool.args(["text", "-", "--dialect", &text.dialect]);
        if let Some(names) = &text.names {
            tool.arg("--names").arg(names);
        }
        let out = match &self.to {
            TextTo::File(file, _) => {
                if file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                // Shares the lock, which therefore lasts until the text is written.
                file.try_clone()?.into()
            }
            TextTo::Command(_) => Stdio::piped(),
        };
        // Open in the tool under the same number; in this process only until the tool has started.
        let inherited = self.buffers.as_ref().and_then(inheritable);
        if let Some(file) = &inherited {
            tool.env(OPEN_VARIABLE, format!("/proc/self/fd/{}", file.as_raw_fd()));
        }
        let mut tool = apart(&mut tool).stdin(Stdio::piped()).stdout(out).spawn()?;
        drop(inherited);
        if let Some(pipe) = &tool.stdin {
            patience::unblock(pipe)?;
        }
        let command = match &self.to {
            TextTo::File(..) => None,
            TextTo::Command(command) => {
                let text = tool.stdout.take().map_or_else(Stdio::null, Stdio::from);
                Some(apart(Command::new("sh").arg("-c").arg(command)).stdin(text).spawn()?)
            }
        };
        Ok(Running { tool, command })
    }

    /// Closes the tool's input and waits until the text is written.
    pub fn close(mut self) -> Result<(), SinkError> {
        let Some(Running { mut tool, command }) = self.running.take() else { return Ok(()) };
        drop(tool.stdin.take());
        let made = self.patience.reap(&mut tool);
        if matches!(made, Ok(None)) {
            return Err(slow(format!("{}, which makes the text,", self.maker.tool.display()), &self.patience));
        }
        if let (Some(mut child), TextTo::Command(command)) = (command, &self.to) {
            ended(&mut child, command, &self.patience)?;
        }
        match made {
            Ok(Some(status)) if status.success() || status.code().is_some_and(|code| EXPLAINED.contains(&code)) => {}
            made => return Err(SinkError::Text { tool: self.maker.tool, status: how(made) }),
        }
        self.check()
    }
}

/// A duplicate of the file descriptor that child processes inherit.
fn inheritable(file: &File) -> Option<OwnedFd> {
    // SAFETY: system calls on an open file; the new descriptor is owned here only.
    unsafe {
        let number = libc::fcntl(file.as_raw_fd(), libc::F_DUPFD, 3);
        (number >= 0).then(|| OwnedFd::from_raw_fd(number))
    }
}

/// In a process group of its own: Ctrl-C at the terminal ends the program, but the text is still written.
fn apart(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Finds the tool beside this library, or else in `PATH`.
fn find() -> Option<PathBuf> {
    let library = library();
    let beside =
        library.iter().filter_map(|library| library.parent()).flat_map(|folder| BESIDE.map(|at| folder.join(at)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join(TOOL));
    beside.chain(in_path).find(|tool| is_program(tool))
}

/// The file that this code was loaded from.
fn library() -> Option<PathBuf> {
    let here = library as fn() -> Option<PathBuf> as usize;
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let bounds = range.and_then(|(start, end)| {
            Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
        });
        bounds.is_some_and(|(start, end)| (start..end).contains(&here))
    })?;
    Some(PathBuf::from(&line[line.find('/')?..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    /// A stand-in for et-trace: prints its arguments, then its input.
    fn tool(folder: &Path, last: &str) -> PathBuf {
        let path = folder.join("tool");
        fs::write(&path, format!("#!/bin/sh\necho \"$@\"\ncat\n{last}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn maker(tool: PathBuf) -> Result<Maker, SinkError> {
        Maker::find(&Text { dialect: "replayer".into(), names: Some("n".into()), tool: Some(tool) })
    }

    fn patience() -> Arc<Patience> {
        Arc::new(Patience::new(Duration::from_secs(20)))
    }

    #[test]
    fn the_tool_inherits_the_buffer_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        let last = "cat \"$ET_BUFFERS\"";
        let mut output =
            TextOutput::new(maker(tool(folder.path(), last)).unwrap(), TextTo::File(file, path.clone()), patience());
        let mut buffers = tempfile::tempfile().unwrap();
        buffers.write_all(b"in the buffers").unwrap();
        output.hand_over(Some(buffers));
        output.write(b"abc ").unwrap();
        output.close().unwrap();
        assert!(fs::read_to_string(path).unwrap().ends_with("\nabc in the buffers"));
    }

    #[test]
    fn a_text_that_another_process_empties_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        let last = "sleep 0.2; : > \"$(readlink /proc/$$/fd/1)\"";
        let mut output =
            TextOutput::new(maker(tool(folder.path(), last)).unwrap(), TextTo::File(file, path), patience());
        output.write(b"abc").unwrap();
        let error = output.close().unwrap_err().to_string();
        assert!(error.ends_with("out short or written over it"), "{error}");
    }

    #[test]
    fn the_text_goes_to_a_command() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let to = TextTo::Command(format!("cat > '{}'", out.display()));
        let mut output = TextOutput::new(maker(tool(folder.path(), "")).unwrap(), to, patience());
        output.write(b"abc").unwrap();
        output.write(b"def").unwrap();
        output.close().unwrap();
        assert_eq!(fs::read_to_string(out).unwrap(), "text - --dialect replayer --names n\nabcdef");
    }

    #[test]
    fn only_what_nobody_has_explained_is_told() {
        let folder = tempfile::tempdir().unwrap();
        for (last, command, expected) in [
            ("exit 3", "cat > /dev/null", None),
            ("kill -9 $$", "cat > /dev/null", Some("signal: 9")),
            ("", "cat > /dev/null; exit 5", Some("exit status: 5")),
        ] {
            let to = TextTo::Command(command.into());
            let mut output = TextOutput::new(maker(tool(folder.path(), last)).unwrap(), to, patience());
            output.write(b"abc").unwrap();
            let said = output.close().err().map(|error| error.to_string());
            assert_eq!(said.is_some(), expected.is_some(), "{last}: {said:?}");
            assert!(said.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }

    #[test]
    fn without_a_tool_nothing_starts() {
        let missing = maker("/no/such/tool".into());
        assert!(missing.unwrap_err().to_string().contains("/no/such/tool is no program"));
        assert!(library().unwrap().is_file());
    }
}
