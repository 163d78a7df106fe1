//! A monitor for tests, and a program that it looks at.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use et_ddm::packet::{HANDSHAKE, Kind};
use et_ddm::{Chunk, ChunkType, Message, Packet, PacketDecoder, Request, chunk};
use et_tests::compiled;
use et_tests::lab::Lab;
use xtask::jdks::Jdk;

/// No step of a test takes longer.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// User id of `nobody`.
const NOBODY: u32 = 65_534;

/// Cargo builds it beside the tests that depend on it.
pub fn library() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("libet_monitor.so"))
}

/// A program under the agent; killed when this goes out of scope.
pub struct Program {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Where the agent publishes its port.
    folder: PathBuf,
    errors: PathBuf,
}

impl Program {
    /// Starts a program of `tests/java/monitor`, with the agent if there are options for it.
    pub fn start(lab: &Lab, jdk: &Jdk, test: &str, agent: Option<&str>, java: &[&str], program: &str) -> Result<Self> {
        Self::start_in(lab, jdk, &lab.folder(jdk, &format!("monitor_{test}"))?, agent, java, program, &[])
    }

    /// The same, with files in that folder, and more on the class path.
    pub fn start_in(
        lab: &Lab,
        jdk: &Jdk,
        folder: &Path,
        agent: Option<&str>,
        java: &[&str],
        program: &str,
        class_path: &[PathBuf],
    ) -> Result<Self> {
        let mut paths = class_path.to_vec();
        if class_path.is_empty() {
            let source = lab.layout.repo.join(format!("tests/java/monitor/{program}.java"));
            paths.push(compiled::classes(lab, &source, 11)?);
        }
        let mut command = Command::new(jdk.java());
        if let Some(options) = agent {
            command.arg(format!("-agentpath:{}={options}", library()?.display()));
        }
        command.args(java).arg("-cp").arg(std::env::join_paths(paths)?).arg(program);
        Self::spawn(command, folder)
    }

    /// A command that ends in a program under the agent.
    pub fn spawn(mut command: Command, folder: &Path) -> Result<Self> {
        let errors = folder.join("stderr.txt");
        // Folders of others do not matter: this is the system's.
        let runtime = folder.join("runtime");
        fs::create_dir_all(&runtime)?;
        command.env("XDG_RUNTIME_DIR", &runtime);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(fs::File::create(&errors)?);
        let mut child = command.spawn().context("cannot start java")?;
        let output = child.stdout.take().context("no output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        Ok(Self { child, input, lines, folder: runtime.join("et-monitor"), errors })
    }

    /// The next line of its output.
    pub fn line(&self) -> Result<String> {
        self.lines.recv_timeout(PATIENCE).with_context(|| format!("no more output; it says {}", self.said()))
    }

    /// The next line, if it comes so soon.
    pub fn line_within(&self, time: Duration) -> Option<String> {
        self.lines.recv_timeout(time).ok()
    }

    /// The next line, which is that.
    pub fn expect(&self, expected: &str) -> Result<()> {
        let line = self.line()?;
        ensure!(line == expected, "{line} instead of {expected}");
        Ok(())
    }

    /// Its standard error so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }

    /// Lets it continue.
    pub fn go_on(&mut self) -> Result<()> {
        let input = self.input.as_mut().context("no input")?;
        input.write_all(b"\n")?;
        Ok(input.flush()?)
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits for its end.
    pub fn end(&mut self) -> Result<ExitStatus> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(Instant::now() < end, "it does not end; it says {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the process has ended; nobody may have waited for it yet.
    fn has_exited(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('Z'))
    }

    /// A line of what it has published; waits until it has.
    pub fn published(&self, name: &str) -> Result<String> {
        let (file, end) = (self.file(), Instant::now() + PATIENCE);
        loop {
            if let Ok(text) = fs::read_to_string(&file) {
                let start = format!("{name}=");
                let value = text.lines().find_map(|line| line.strip_prefix(&start));
                return value.map(str::to_owned).with_context(|| format!("no {name} in {text}"));
            }
            let waits = Instant::now() < end && !self.has_exited();
            ensure!(waits, "nothing was published in {}: {}", file.display(), self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The file in which it announces itself.
    pub fn file(&self) -> PathBuf {
        self.folder.join(self.pid().to_string())
    }

    /// Bytes of memory that it has.
    pub fn resident(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes << 10)
    }

    /// A connection without a word.
    pub fn connect(&self) -> Result<TcpStream> {
        connect(self.published("port")?.parse()?)
    }

    /// The same of another user of the machine. Only root can be another.
    pub fn connect_as_another(&self) -> Result<TcpStream> {
        let port = self.published("port")?.parse()?;
        // A separate thread, whose files and sockets belong to another user until its end.
        #[allow(unsafe_code, reason = "a system call")]
        let another = move || {
            // SAFETY: it changes what this thread makes from now on, and takes no pointers.
            unsafe { libc::syscall(libc::SYS_setfsuid, NOBODY) };
            connect(port)
        };
        std::thread::spawn(another).join().map_err(|_| anyhow::anyhow!("no thread"))?
    }
}

/// Whether this process is root and can act as another user.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0)
}

fn connect(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that has said HELO.
pub struct Client {
    stream: TcpStream,
    decoder: PacketDecoder,
    next: u32,
    /// Unsolicited messages, in order.
    pub told: Vec<Message>,
}

impl Client {
    /// One that has shaken hands, and nothing else.
    pub fn over(mut stream: TcpStream) -> Result<Self> {
        stream.write_all(HANDSHAKE)?;
        Ok(Self { stream, decoder: PacketDecoder::new(64 << 20), next: 1, told: Vec::new() })
    }

    /// Connects without the token.
    pub fn without_token(program: &Program) -> Result<Self> {
        let mut client = Self::over(program.connect()?)?;
        let Some(Message::Hello(hello)) = client.ask(Request::Hello { version: 1 })? else { bail!("no HELO") };
        ensure!(hello.pid == program.pid() && hello.version == 1, "{hello:?}");
        Ok(client)
    }

    /// Connects and sends the token.
    pub fn new(program: &Program) -> Result<Self> {
        let mut client = Self::without_token(program)?;
        client.show_token(program)?;
        Ok(client)
    }

    /// Sends the token.
    pub fn show_token(&mut self, program: &Program) -> Result<()> {
        self.tell(Request::Other(Chunk::new(ChunkType::ETKN, program.published("token")?.into_bytes())))
    }

    /// Receives the next packet of any kind.
    pub fn packet(&mut self) -> Result<Packet> {
        let mut buffer = [0; 64 << 10];
        loop {
            if let Some(packet) = self.decoder.next_packet()? {
                return Ok(packet);
            }
            let count = self.stream.read(&mut buffer).context("no packet comes")?;
            ensure!(count > 0, "the connection was closed");
            self.decoder.push(&buffer[..count]);
        }
    }

    fn keep(&mut self, packet: &Packet) -> Result<()> {
        for chunk in chunk::decode(&packet.data)? {
            self.told.push(Message::read(&chunk)?);
        }
        Ok(())
    }

    /// Sends chunks and returns those of the reply.
    pub fn exchange(&mut self, chunks: &[Chunk]) -> Result<Vec<Chunk>> {
        self.next += 1;
        let id = self.next;
        self.stream.write_all(&Packet::ddm(id, chunk::encode(chunks)).encode())?;
        loop {
            let packet = self.packet()?;
            match packet.kind {
                Kind::Reply { error } => {
                    ensure!(packet.id == id && error == 0, "{packet:?}");
                    return Ok(chunk::decode(&packet.data)?);
                }
                Kind::Command { .. } => self.keep(&packet)?,
            }
        }
    }

    /// Sends a request and returns its reply.
    pub fn ask(&mut self, request: Request) -> Result<Option<Message>> {
        let reply = self.exchange(&[request.chunk()])?;
        ensure!(reply.len() <= 1, "{reply:?}");
        Ok(reply.first().map(Message::read).transpose()?)
    }

    /// A request with an empty reply.
    pub fn tell(&mut self, request: Request) -> Result<()> {
        let reply = self.ask(request)?;
        ensure!(reply.is_none(), "{reply:?}");
        Ok(())
    }

    /// Sends bytes that are not a DDM packet.
    pub fn raw(&mut self, packet: &Packet) -> Result<()> {
        Ok(self.stream.write_all(&packet.encode())?)
    }

    /// Waits for a message; everything before it is kept.
    pub fn until(&mut self, mut is_it: impl FnMut(&Message) -> bool) -> Result<Message> {
        let mut at = 0;
        loop {
            if let Some(found) = self.told[at..].iter().find(|message| is_it(message)) {
                return Ok(found.clone());
            }
            at = self.told.len();
            let packet = self.packet()?;
            if !packet.is_reply() {
                self.keep(&packet)?;
            }
        }
    }
}
