//! A recursion that fits on a stack without hooks fits on one with hooks as well: on that of the main thread, of others, and of those
//! for which a program asks for a size.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::command;

use crate::Case;
use crate::bench::{Bench, text};

pub const CASES: &[(&str, Case)] = &[
    ("stacks", stacks),
    ("stacks_of_variables", stacks_of_variables),
    ("stacks_of_javac", stacks_of_javac),
    ("overflows_in_handlers", overflows_in_handlers),
];

/// The releases that keep the size of a thread's stack in different fields.
pub const FEATURES: [u32; 2] = [17, 25];

/// Maximum depth of a small recursion, compiled by C1, whose frames are enlarged by hooks beyond those of the
/// interpreter and of C2. Smaller stacks come first, in the order of the arguments: the system reuses the stack of an
/// ended thread if it is large enough.
const DEEP: &str = "
public class Deep {
    static int depth, stop = 20;
    static int down(int level) { depth = level; return level == stop ? 0 : 1 + down(level + 1); }
    static void tell(String which) {
        stop = Integer.MAX_VALUE;
        int deepest = 0;
        for (int i = 0; i < 3; i++) {
            try { down(0); } catch (StackOverflowError expected) { }
            deepest = Math.max(deepest, depth);
        }
        System.out.println(which + \" \" + deepest);
    }
    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 20000; i++) down(0);
        for (String argument : arguments) {
            long size = Long.parseLong(argument);
            Thread thread = new Thread(null, () -> tell(String.valueOf(size)), \"deep\", size);
            thread.start();
            thread.join();
        }
        tell(\"main\");
    }
}";

const C1: &str = "-XX:TieredStopAtLevel=1";

/// Sizes for threads, in bytes; 0: none.
const SMALL: &str = "307200";
const LARGE: &str = "3145728";
const NONE: &str = "0";

/// How deep the recursion came on each of the threads.
fn depths(command: &mut Command) -> Result<Vec<(String, u64)>> {
    let output = command.output()?;
    ensure!(output.status.success(), "{}", text(&output.stderr));
    let line =
        |line: &str| line.split_once(' ').and_then(|(which, depth)| Some((which.to_owned(), depth.parse().ok()?)));
    text(&output.stdout).lines().map(line).collect::<Option<_>>().context("lines of names and depths")
}

/// Handlers that cover themselves, of `synchronized` and `finally`, at the end of the stack: a hook there would
/// overflow again and again. Each recursion starts at another depth, so that stacks end at each of the handlers'
/// instructions. The monitor must be free at the end.
const HANDLERS: &str = "
public class Handlers {
    static final Object LOCK = new Object();
    static int count, depth;
    static volatile int rounds;
    static void from(int level, Runnable down) { if (level == 0) down.run(); else from(level - 1, down); }
    static int locked(int level) { depth = level; synchronized (LOCK) { return 1 + locked(level + 1); } }
    static int last(int level) {
        depth = level;
        try { return 1 + last(level + 1); } catch (IllegalStateException none) { return 0; } finally { count++; }
    }
    public static void main(String[] arguments) throws Exception {
        Thread guard = new Thread(() -> {
            for (int before = -1; before != rounds;) {
                before = rounds;
                try { Thread.sleep(20_000); } catch (InterruptedException none) { }
            }
            System.out.println(\"hangs\");
            Runtime.getRuntime().halt(9);
        });
        guard.setDaemon(true);
        guard.start();
        for (int i = 0; i < 25; rounds = ++i) {
            try { from(i, () -> locked(0)); } catch (StackOverflowError expected) { }
            try { from(i, () -> last(0)); } catch (StackOverflowError expected) { }
        }
        Thread other = new Thread(() -> { synchronized (LOCK) { System.out.println(\"free\"); } });
        other.start();
        other.join();
    }
}";

fn overflows_in_handlers(bench: &Bench) -> Result<()> {
    bench.compile(&[("Handlers.java", HANDLERS)], &[], "classes")?;
    let output = bench.traced(&["-q"], "java", &["-Xss200k", "-cp", "classes", "Handlers"]).output()?;
    ensure!(
        text(&output.stdout) == "free\n" && output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    Ok(())
}

/// Nowhere less deep than without hooks.
fn compare(plain: &[(String, u64)], traced: &[(String, u64)]) -> Result<()> {
    let fits = plain.iter().zip(traced).all(|(plain, traced)| plain.0 == traced.0 && traced.1 >= plain.1);
    ensure!(plain.len() == 4 && traced.len() == 4 && fits, "plain: {plain:?}\ntraced: {traced:?}");
    Ok(())
}

fn stacks(bench: &Bench) -> Result<()> {
    bench.compile(&[("Deep.java", DEEP)], &[], "classes")?;
    for given in ["-Dnone=given", "-Xss600k", "-XX:ThreadStackSize=600"] {
        let command = [C1, given, "-cp", "classes", "Deep", SMALL, NONE, LARGE];
        let plain = depths(&mut bench.plain("java", &command))?;
        compare(&plain, &depths(&mut bench.traced(&["-q"], "java", &command))?).context(given)?;
    }
    // By `et.args`, where nothing else is said.
    let command = [C1, "-cp", "classes", "Deep", SMALL, NONE, LARGE];
    let instrumented = bench.lab.instrumented(&bench.jdk)?;
    let mut java = Command::new(instrumented.java());
    java.current_dir(&bench.folder).args(instrumented.options(&bench.at("args.ettrace"))).args(command);
    compare(&depths(&mut bench.plain("java", &command))?, &depths(&mut java)?)
}

fn stacks_of_variables(bench: &Bench) -> Result<()> {
    bench.compile(&[("Deep.java", DEEP)], &[], "classes")?;
    let command = [C1, "-cp", "classes", "Deep", SMALL, LARGE, NONE];
    for variable in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"] {
        // More than what the traced program has if nothing is said.
        let set = |mut command: Command| depths(command.env(variable, "-Xss7m"));
        let plain = set(bench.plain("java", &command))?;
        compare(&plain, &set(bench.traced(&["-q"], "java", &command))?).context(variable)?;
    }
    Ok(())
}

/// As deep as javac's own recursion may go: it goes down an expression with as many terms.
fn stacks_of_javac(bench: &Bench) -> Result<()> {
    let terms: String = (0..1300).map(|number| format!(" + a * {number}")).collect();
    bench.write("Sum.java", &format!("class Sum {{ int of(int a) {{ return a{terms}; }} }}"))?;
    for given in ["-J-Dnone=given", "-J-Xss1m"] {
        let arguments = [given, "-d", "out", "--release", "11", "Sum.java"];
        command::quiet(&mut bench.plain("javac", &arguments)).context("plain")?;
        command::quiet(&mut bench.traced(&["-q"], "javac", &arguments)).with_context(|| format!("traced, {given}"))?;
    }
    Ok(())
}
