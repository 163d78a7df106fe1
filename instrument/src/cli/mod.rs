//! The command line. [`main`] is all that the binary calls.

mod cache;
mod error;
mod mistakes;
mod prepare;
mod program;
mod run;
mod shared;

use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use et_names::escape::{self, Json, Lines, OneLine};

use crate::app;
use crate::artifact::Settings;
use crate::jdk::JdkJob;
use crate::memory::Budget;
use crate::progress::Progress;
use crate::report::Report;
use crate::verify::{self, Verdict};
use cache::CacheArgs;
use error::Error;
use prepare::PrepareArgs;
use run::RunArgs;
use shared::{HookArgs, Rule, RuntimeArgs, Threads, rules};

const EXAMPLES: &str = "\
Examples:
  et-instrument run -- java -jar app.jar
      trace a program; does all of the below, once
  et-instrument app.jar -o app-et.jar
      instrument a jar, a war, a Spring Boot jar, a folder of classes or jars
  et-instrument one.jar two.war -o et/
      several inputs make a flat folder; to keep a layout (such as a
      Class-Path of lib/x.jar), pass the folder: et-instrument app/ -o et/
  et-instrument --include 'com.acme.**' app.jar -o app-et.jar
      hook only the classes of com.acme and below
  et-instrument jdk --java-home $JAVA_HOME -o jdk-et
      instrument a JDK, once; then run with
      jdk-et/bin/java @jdk-et/et.args -jar app-et.jar
  et-instrument verify app-et.jar jdk-et
      check the output";

/// Instruments Java classes so that a run leaves a trace of what every object did.
#[derive(Debug, Parser)]
#[command(name = "et-instrument", version, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    app: AppArgs,
}

#[derive(Debug, Args)]
struct AppArgs {
    /// Jars, wars, folders of classes or jars, class files
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Output of the same kind as the input, or a folder for several inputs
    #[arg(short, long, required = true, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Trace a program: et-instrument run -- java -jar app.jar
    ///
    /// Makes an instrumented copy of the program's JDK and instruments its class path and module path, or takes both
    /// from the cache. --include and --exclude apply to the program; the JDK is always hooked as a whole. The exit code
    /// is the program's; 125, 126 and 127 mean that it was not run, 128 and more that a signal ended it.
    Run(RunArgs),
    /// Prepare everything that run needs and print where it is, for build tools
    ///
    /// Prints the options for the JVM and the class path of the copies. They are those that run would use, and share
    /// its cache; --include and --exclude apply to the program. Without a terminal, progress is printed in
    /// lines that begin with "progress: ".
    Prepare(PrepareArgs),
    /// List or clear what run has cached
    Cache(CacheArgs),
    /// Make an instrumented copy of a JDK (for a JDK 8: instrumented boot jars)
    ///
    /// The copy shares large unchanged files with the original by hard links. Run it with
    /// OUT/bin/java @OUT/et.args …
    Jdk {
        #[command(flatten)]
        jdk: JdkArgs,
        /// Make no class data sharing archive: the copy is made faster, but programs start more slowly
        #[arg(long)]
        no_cds: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Make patches for a few modules of a JDK instead of a copy
    ///
    /// Uses --patch-module: there is no copy of the JDK, but it starts more slowly, without class data sharing. Run it with
    /// JAVA_HOME/bin/java @OUT/et.args …
    Patch {
        #[command(flatten)]
        jdk: JdkArgs,
        /// A module to patch in addition to java.base; may be repeated
        #[arg(long = "module", value_name = "MODULE")]
        modules: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Check the output: jars, folders, class files, JDK copies, images, jmods
    ///
    /// Reads classes with code that is independent of the rewriter, and checks their structure, the archives around
    /// them, and that classes match their names tables. Prints one line per finding; the exit code is 1 if there is one.
    Verify {
        /// Outputs of et-instrument
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Also check classes that are not instrumented
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        threads: Threads,
        /// How to report findings
        #[arg(long, value_enum, default_value_t = Format::Text)]
        report: Format,
        /// Print no progress and no closing line
        #[arg(long, short)]
        quiet: bool,
    },
}

#[derive(Debug, Args)]
struct JdkArgs {
    /// The JDK to instrument; it is not changed
    #[arg(long, value_name = "HOME")]
    java_home: PathBuf,
    /// The folder to create
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    runtime: RuntimeArgs,
}

#[derive(Debug, Args)]
struct Common {
    #[command(flatten)]
    hooks: HookArgs,
    /// First id of the output's classes and methods, in case the ids of several outputs collide
    #[arg(long, value_name = "ID")]
    id_base: Option<u32>,
    #[command(flatten)]
    threads: Threads,
    /// How to report what was done
    #[arg(long, value_enum, default_value_t = Format::Text)]
    report: Format,
    /// Print no progress and no summary, only what was not instrumented
    #[arg(long, short)]
    quiet: bool,
    /// Replace the output if it exists
    #[arg(long, short)]
    force: bool,
    /// Fail if a class or nested jar would be skipped
    #[arg(long)]
    strict: bool,
    /// Verify the output before it is put in place, like et-instrument verify
    #[arg(long)]
    check: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people, on stderr
    Text,
    /// One JSON object on stdout
    Json,
}

/// The definition of the command line, for the manual.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command line and says what went wrong.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let meant = mistakes::meant(&arguments);
    // Invalid arguments are quoted in the message, so they are escaped first.
    let safe = arguments.iter().map(|argument| OneLine(argument.to_string_lossy()).to_string().into()).collect();
    let (cli, rules) = match parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            // clap's message about such a line would not help.
            match meant.filter(|_| !asked) {
                Some(meant) => say(format_args!("et-instrument: {meant}")),
                None => _ = parse(safe).err().unwrap_or(error).print(),
            }
            return ExitCode::from(if asked { 0 } else { 2 });
        }
    };
    crate::interrupt::install();
    match execute(&cli, &rules) {
        Ok(code) => code,
        Err(error) => {
            let error = error.unless_interrupted();
            error.findings().iter().take(verify::LISTED).for_each(|finding| say(format_args!("{finding}")));
            say(format_args!("et-instrument: {error}"));
            let is_run = matches!(cli.command, Some(Command::Run(_)));
            ExitCode::from(if is_run { RunArgs::exit_code(&error) } else { error.exit_code() })
        }
    }
}

/// Writes a line to standard error with a single write. Errors are ignored, as there is nowhere else to report them.
fn say(line: fmt::Arguments<'_>) {
    escape::say(&mut std::io::stderr(), line);
}

fn parse(arguments: Vec<OsString>) -> Result<(Cli, Vec<Rule>), clap::Error> {
    let matches = Cli::command().try_get_matches_from(arguments)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let rules = rules(matches.subcommand().map_or(&matches, |(_, matches)| matches));
    Ok((cli, rules))
}

fn execute(cli: &Cli, rules: &[Rule]) -> Result<ExitCode, Error> {
    let start = Instant::now();
    let common = match &cli.command {
        None => &cli.app.common,
        Some(Command::Jdk { common, .. } | Command::Patch { common, .. }) => common,
        Some(Command::Run(run)) => return run.execute(rules),
        Some(Command::Prepare(prepare)) => return prepare.execute(rules),
        Some(Command::Cache(cache)) => return cache.execute(),
        Some(Command::Verify { paths, all, threads, report, quiet }) => {
            let progress = Progress::new(*quiet);
            let options = verify::Options { all: *all, memory: Budget::of_machine(), progress: progress.clone() };
            let verdict = threads.pool().run(|| verify::run(paths, &options));
            progress.finish();
            return Ok(print_verdict(&verdict?, *report, *quiet));
        }
    };
    let progress = Progress::new(common.quiet);
    let settings =
        Settings { strict: common.strict, check: common.check, ..common.hooks.settings(rules, progress.clone())? };
    if settings.counts {
        let why = "--events counts is for run and prepare: instrument with --events alloc,stacks, and run with -Det.counts=1s";
        return Err(Error::Usage(why.to_owned()));
    }
    let done = common.threads.pool().run(|| work(cli, common, &settings));
    progress.finish();
    let mut report = done?;
    report.took(start.elapsed());
    print(&report, common);
    Ok(ExitCode::SUCCESS)
}

fn work(cli: &Cli, common: &Common, settings: &Settings) -> Result<Report, Error> {
    let job = |args: &JdkArgs, cds| JdkJob {
        home: args.java_home.clone(),
        output: args.output.clone(),
        runtime_dir: args.runtime.runtime_dir.clone(),
        force: common.force,
        id_base: common.id_base,
        cds,
        children: false,
    };
    match &cli.command {
        None => {
            let output = cli.app.output.as_ref().ok_or_else(|| Error::Usage("no output given: pass -o OUT".into()))?;
            Ok(app::run(&cli.app.inputs, output, common.force, common.id_base, settings)?)
        }
        Some(Command::Jdk { jdk, no_cds, .. }) => Ok(job(jdk, !no_cds).copy(settings)?),
        Some(Command::Patch { jdk, modules, .. }) => Ok(job(jdk, false).patch(modules, settings)?),
        Some(Command::Verify { .. } | Command::Run(_) | Command::Prepare(_) | Command::Cache(_)) => {
            Err(Error::Usage("this command writes no output".into()))
        }
    }
}

fn print(report: &Report, common: &Common) {
    // A closed pipe is not an error: the work is done.
    let _ = match common.report {
        Format::Json => writeln!(std::io::stdout(), "{}", Json(report.json())),
        Format::Text if common.quiet => {
            report.quiet_text().iter().for_each(|line| say(format_args!("et-instrument: {line}")));
            Ok(())
        }
        Format::Text => std::io::stderr().write_all(Lines(report.text()).to_string().as_bytes()),
    };
}

/// Findings are the result, so they go to stdout in either form.
fn print_verdict(verdict: &Verdict, format: Format, quiet: bool) -> ExitCode {
    let mut out = std::io::stdout().lock();
    // A closed pipe does not change the exit code.
    let _ = match format {
        Format::Json => writeln!(out, "{}", Json(verdict.json())),
        Format::Text => verdict.lines().iter().try_for_each(|line| writeln!(out, "{}", OneLine(line))),
    };
    if format == Format::Text && !quiet {
        say(format_args!("{}", verdict.summary()));
    }
    if verdict.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Cli, Vec<Rule>), clap::Error> {
        parse(line.split(' ').map(OsString::from).collect())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn includes_and_excludes_keep_their_order() {
        let (_, rules) = parsed("x --exclude a --include b --exclude c in.jar -o out.jar").unwrap();
        assert_eq!(rules, [(false, "a".into()), (true, "b".into()), (false, "c".into())]);
        let (_, rules) = parsed("x jdk --java-home h -o o --include b --exclude a").unwrap();
        assert_eq!(rules, [(true, "b".into()), (false, "a".into())]);
    }

    #[test]
    fn wrong_usage_is_refused() {
        for line in ["x", "x in.jar", "x -o out", "x in.jar -o out --events bogus", "x jdk -o", "x patch --java-home h"]
        {
            assert!(parsed(line).is_err(), "{line}");
        }
        assert!(parsed("x a.jar b.jar -o out --events alloc,update -j 2 --report json").is_ok());
    }
}
