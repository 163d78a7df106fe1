//! `et-trace report`: the page says where the leak is, works in a browser, and lets no name out of a program do anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use et_tests::lab::{self, Lab};
use xtask::jdks::Jdk;
use xtask::layout::Layout;
use xtask::{assets, browser, command};

const FEATURE: u32 = 17;

fn main() -> ExitCode {
    let no_browser = |_: &Lab, jdk: &Jdk| no_javac(jdk).or_else(browser::obstacle);
    let trials = vec![
        lab::on_jdk_unless(FEATURE, "the_leak_is_on_the_overview", |_, jdk| no_javac(jdk), leak),
        lab::on_jdk_unless(FEATURE, "holders_of_what_grows_are_found_one_by_one", |_, jdk| no_javac(jdk), holders),
        lab::on_jdk_unless(FEATURE, "a_report_in_a_browser", no_browser, in_a_browser),
        lab::on_jdk_unless(FEATURE, "lines_of_source_in_a_browser", no_browser, with_source),
        lab::on_jdk_unless(FEATURE, "a_report_of_allocations_only_in_a_browser", no_browser, of_allocations),
        lab::on_jdk_unless(FEATURE, "a_difference_in_a_browser", no_browser, of_two_runs),
        lab::on_jdk_unless(FEATURE, "libraries_of_reports_are_what_npm_has", |_, _| browser::without_npm(), bundle),
    ];
    lab::run(trials).exit_code()
}

fn no_javac(jdk: &Jdk) -> Option<String> {
    jdk.javac().is_none().then(|| format!("no javac in {}", jdk.home.display()))
}

/// The example runs in a thread whose name looks like markup.
const HOSTILE: &str = r#"
public class Hostile {
    public static void main(String[] arguments) {
        Thread.currentThread().setName("</script><script>alert(1)</script><img src=x onerror=alert(2)>\nrm -rf ~\u202e");
        shop.Main.main(arguments);
    }
}

class Twice {
    public static void main(String[] arguments) {
        shop.Main.main(arguments);
        shop.Main.main(arguments);
    }
}
"#;

/// A trace of the leaking cache.
fn traced(lab: &Lab, jdk: &Jdk, folder: &Path, main: &str, events: &[&str]) -> Result<PathBuf> {
    let classes = folder.join("classes");
    fs::create_dir_all(&classes)?;
    let sources = fs::read_dir(lab.layout.repo.join("examples/leaky-cache/shop"))?;
    let hostile = folder.join("Hostile.java");
    fs::write(&hostile, HOSTILE)?;
    let sources = sources.flatten().map(|entry| entry.path()).chain([hostile]);
    let mut compile = lab.compiler.compile()?;
    command::quiet(compile.args(["-g", "--release", "11", "-encoding", "UTF-8", "-d"]).arg(&classes).args(sources))?;
    let rewritten = folder.join("classes-et");
    command::quiet(Command::new(lab.tools.et_instrument()).arg(&classes).args(events).arg("-o").arg(&rewritten))?;
    let trace = folder.join("leaky.ettrace");
    let java = lab.instrumented_with(jdk, events)?;
    let mut run = Command::new(java.java());
    command::quiet(run.args(java.options(&trace)).arg("-cp").arg(&rewritten).arg(main).current_dir(folder))?;
    Ok(trace)
}

fn report(lab: &Lab, trace: &Path) -> Result<PathBuf> {
    let page = trace.with_extension("html");
    command::quiet(Command::new(lab.tools.et_trace()).arg("report").arg(trace).arg("-o").arg(&page))?;
    Ok(page)
}

fn print(lab: &Lab, trace: &Path, arguments: &[&str]) -> Result<String> {
    let mut et_trace = Command::new(lab.tools.et_trace());
    let output = command::quiet(et_trace.arg("report").arg(trace).args(arguments))?;
    Ok(String::from_utf8(output.stdout)?)
}

fn leak(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "report_leak")?;
    let trace = traced(lab, jdk, &folder, "shop.Main", &[])?;
    let page = fs::read_to_string(report(lab, &trace)?)?;
    // In words, before anything else.
    let stands_out = page.split("What stands out").nth(1).context("nothing stands out")?;
    let first = stands_out.split("</article>").next().unwrap_or_default();
    for words in [
        "finding high",
        "Memory that only grows",
        "static shop.Main.CACHE → byWord",
        "shop.Page",
        "shop.ProductCache.page:25",
    ] {
        ensure!(first.contains(words), "the overview does not begin with {words:?}: {first}");
    }
    // The second time it is only read, and the same.
    ensure!(fs::read_to_string(report(lab, &trace)?)? == page, "the kept report makes another page");
    let growing = print(lab, &trace, &["--show", "suspects/growing", "--match", "shop.Line"])?;
    ensure!(growing.lines().any(|line| line.contains("shop.Page.<init>:15")), "{growing}");
    ensure!(!growing.contains("shop.ProductCache.page:25"), "rows that do not match are shown: {growing}");
    // Live objects at a moment; their number grew linearly.
    let lines_at = |moment: &str| -> Result<u64> {
        let alive = print(lab, &trace, &["--show", "alive/classes", "--at", moment, "--match", "shop.Line"])?;
        // The class comes last, and its objects before it.
        let row = alive.lines().find(|line| line.ends_with(" shop.Line")).with_context(|| alive.clone())?;
        let objects = row.split_whitespace().rev().nth(1).context("no columns")?.replace(',', "");
        objects.parse().with_context(|| alive.clone())
    };
    let (half, all) = (lines_at("50%")?, lines_at("end")?);
    ensure!(all == 63_600 && (20_000..50_000).contains(&half), "{half} and {all} lines");
    let refused = Command::new(lab.tools.et_trace())
        .arg("report")
        .arg(&trace)
        .args(["--show", "alive", "--at", "method:a.B.c"])
        .output()?;
    let said = String::from_utf8_lossy(&refused.stderr);
    ensure!(!refused.status.success() && said.contains("does not record when methods are entered"), "{said}");
    let json: serde_json::Value = serde_json::from_str(&print(lab, &trace, &["--json"])?)?;
    let growing = &json["suspects"]["growing"][0];
    ensure!(growing["stillGrows"] == true && growing["end"]["objects"] == 63_600, "{growing}");
    let holders = print(lab, &trace, &["--show", "holders/end", "--match", "byWord"])?;
    ensure!(holders.lines().any(|line| line.contains("  java.util.HashMap  ")), "{holders}");
    // The cache is held by one static field, at the peak as at the end.
    let holder = print(lab, &trace, &["--show", "holders/roots", "--match", "static shop.Main.CACHE"])?;
    ensure!(holder.lines().any(|line| line.ends_with("  static shop.Main.CACHE")), "{holder}");
    // Unknown prices cause exceptions.
    let exceptions = print(lab, &trace, &["--show", "suspects/exceptions"])?;
    let thrown = exceptions.lines().find(|line| line.contains("shop.PriceHandler.price"));
    ensure!(thrown.is_some_and(|line| line.contains("shop.PriceHandler.answer")), "{exceptions}");
    fs::remove_dir_all(&folder).map_err(Into::into)
}

/// Programs that leak in two places, and some that fill something and do not leak.
const KEEPING: &str = r#"
import java.util.*;

public class Keeping {
    static final class Quote {
        final String text;
        final int number;
        Quote(int number) { this.number = number; text = "quote " + number; }
        int number() { return number; }
    }

    static final class Visit {
        final long[] times = new long[4];
    }

    static final class Server {
        final Map<Integer, Quote> cache = new HashMap<>();
        final List<Visit> log = new ArrayList<>();
        /** The last hundred only. */
        final ArrayDeque<Quote> recent = new ArrayDeque<>();

        void answer(int request) {
            Quote quote = new Quote(request);
            recent.addLast(quote(new Quote(request)));
            if (recent.size() > 100) {
                recent.removeFirst();
            }
            log.add(new Visit());
        }

        Quote quote(Quote quote) {
            cache.put(quote.number(), new Quote(quote.number()));
            return quote;
        }
    }

    static final Server SERVER = new Server();
    static final List<Quote> ROWS = new ArrayList<>();

    static void load(int rows) {
        for (int row = 0; row < rows; row++) {
            ROWS.add(new Quote(row));
        }
    }

    static long work(int times) {
        long sum = 0;
        for (int time = 0; time < times; time++) {
            sum += new Quote(time).number();
        }
        return sum;
    }

    public static void main(String[] arguments) {
        switch (arguments[0]) {
            case "leaks":
                for (int request = 0; request < 3000; request++) {
                    SERVER.answer(request);
                }
                break;
            case "job":
                load(30_000);
                long sum = 0;
                for (int pass = 0; pass < 30; pass++) {
                    for (Quote row : ROWS) {
                        sum += row.number();
                    }
                }
                System.out.println(sum);
                break;
            case "step":
                work(30_000);
                load(2000);
                work(15_000);
                break;
        }
    }
}
"#;

fn holders(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "report_holders")?;
    let (classes, rewritten) = (folder.join("classes"), folder.join("classes-et"));
    fs::write(folder.join("Keeping.java"), KEEPING)?;
    let mut compile = lab.compiler.compile()?;
    command::quiet(compile.args(["-g", "--release", "11", "-d"]).arg(&classes).arg(folder.join("Keeping.java")))?;
    command::quiet(Command::new(lab.tools.et_instrument()).arg(&classes).arg("-o").arg(&rewritten))?;
    let java = lab.instrumented_with(jdk, &[])?;
    let leaks = |program: &str| -> Result<Vec<String>> {
        let trace = folder.join(program).with_extension("ettrace");
        let mut run = Command::new(java.java());
        command::quiet(run.args(java.options(&trace)).arg("-cp").arg(&rewritten).args(["Keeping", program]))?;
        let json: serde_json::Value = serde_json::from_str(&print(lab, &trace, &["--no-lives", "--json"])?)?;
        let findings = json["findings"].as_array().context("no findings")?.iter();
        let leaks =
            findings.filter(|finding| finding["title"].as_str().is_some_and(|title| title.starts_with("Memory")));
        let words = |finding: &serde_json::Value| {
            let pieces = finding["says"].as_array().into_iter().flatten();
            pieces.filter_map(|piece| piece.as_object()?.values().next()?.as_str()).collect::<String>()
        };
        Ok(leaks.map(words).collect())
    };
    let mut found = leaks("leaks")?;
    found.sort_unstable();
    ensure!(found.len() == 2, "two leaks: {found:#?}");
    for (says, holder, what) in [
        (&found[0], "static Keeping.SERVER → cache holds ", ": 3,000 Keeping$Quote, made in Keeping$Server.quote:"),
        (&found[1], "static Keeping.SERVER → log holds ", ": 3,000 Keeping$Visit, made in Keeping$Server.answer:"),
    ] {
        ensure!(
            says.starts_with(holder) && says.contains(what) && says.contains("it still grows at the end"),
            "{says}"
        );
    }
    for program in ["job", "step"] {
        let found = leaks(program)?;
        ensure!(found.is_empty(), "{program} does not leak: {found:#?}");
    }
    fs::remove_dir_all(&folder).map_err(Into::into)
}

/// Looks at a page as a reader would.
fn browse(lab: &Lab, page: &Path, name: &str, options: &[&str]) -> Result<()> {
    let chromium = browser::find().context("no chromium")?;
    // Not one folder for all: tests run at the same time.
    let script = browser::driver(&lab.layout, "report/browse.mjs", &lab.layout.target.join("browser").join(name))?;
    let screenshots = lab.layout.target.join("report").join(name);
    fs::create_dir_all(&screenshots)?;
    let mut node = Command::new("node");
    node.arg(script).arg(chromium).arg(page).arg(&screenshots).args(options);
    let output = node.stdin(Stdio::null()).output().context("cannot start node")?;
    if !output.status.success() {
        bail!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn in_a_browser(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "report_browser")?;
    let trace = traced(lab, jdk, &folder, "Hostile", &[])?;
    let page = report(lab, &trace)?;
    browse(lab, &page, "all-events", &[])?;
    fs::remove_dir_all(&folder).map_err(Into::into)
}

/// Reports of two traces in a folder: each has the lines of source at its sites.
fn with_source(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "report_source")?;
    let trace = traced(lab, jdk, &folder, "shop.Main", &[])?;
    let other = folder.join("other.ettrace");
    fs::copy(&trace, &other)?;
    let (pages, source) = (folder.join("pages"), lab.layout.repo.join("examples/leaky-cache"));
    let mut et_trace = Command::new(lab.tools.et_trace());
    let report = et_trace.arg("report").args([&trace, &other]).arg("--source").arg(&source).arg("-o").arg(&pages);
    let said = String::from_utf8(command::quiet(report)?.stderr)?;
    ensure!(said.matches(": note: --source: no line of source for ").count() == 2, "{said}");
    browse(lab, &pages.join("leaky.html"), "source", &["--source"])?;
    let other = fs::read_to_string(pages.join("other.html"))?;
    ensure!(other.contains("page = new Page(product);"), "the second report has no lines of source");
    fs::remove_dir_all(&folder).map_err(Into::into)
}

fn of_allocations(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "report_alloc")?;
    let trace = traced(lab, jdk, &folder, "shop.Main", &["--events", "alloc"])?;
    let page = report(lab, &trace)?;
    let text = fs::read_to_string(&page)?;
    for said in ["Calling contexts are unknown", "Lifetimes cannot be", "Suspects cannot be", "without --events"] {
        ensure!(text.contains(said), "the page does not say {said:?}");
    }
    browse(lab, &page, "allocations-only", &["--without-deaths"])?;
    fs::remove_dir_all(&folder).map_err(Into::into)
}

fn of_two_runs(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (before, after) = (lab.folder(jdk, "report_before")?, lab.folder(jdk, "report_after")?);
    let traces = [traced(lab, jdk, &before, "shop.Main", &[])?, traced(lab, jdk, &after, "Twice", &[])?];
    let page = after.join("diff.html");
    let mut diff = Command::new(lab.tools.et_trace());
    let output = command::quiet(diff.arg("diff").args(&traces).arg("-o").arg(&page))?;
    ensure!(output.stdout.is_empty(), "a page is written, and text as well");
    let text = fs::read_to_string(&page)?;
    // The second time the cache is full: pages are made for what has fallen out of it.
    for said in [
        "rather than",
        "more</strong> than before",
        "more</strong> is alive than before",
        "shop.Page",
        "et-trace diff ",
    ] {
        ensure!(text.contains(said), "the page does not say {said:?}");
    }
    // The command of a row prints the row.
    let mut diff = Command::new(lab.tools.et_trace());
    let rows = command::quiet(diff.arg("diff").args(&traces).args(["--match", "shop.Page"]))?;
    let rows = String::from_utf8(rows.stdout)?;
    ensure!(rows.contains("shop.Page") && !rows.contains("shop.SearchHandler.answer  "), "{rows}");
    browse(lab, &page, "difference", &["--diff"])?;
    fs::remove_dir_all(&before)?;
    fs::remove_dir_all(&after).map_err(Into::into)
}

fn bundle(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "report_assets")?;
    let layout: &Layout = &lab.layout;
    for libraries in assets::LIBRARIES {
        let made = folder.join(libraries.of).join("vendor");
        libraries.bundle(layout, &folder.join(libraries.of).join("npm"), &made)?;
        for name in assets::BUNDLED {
            let (kept, new) = (fs::read(libraries.vendor(layout).join(name))?, fs::read(made.join(name))?);
            ensure!(kept == new, "{}/vendor/{name} is not what cargo xtask assets makes", libraries.folder);
        }
    }
    fs::remove_dir_all(&folder).map_err(Into::into)
}
