//! The sentences of a report: findings, missing information, and the first entries of each list.

use et_names::EventSet;
use et_names::units::{bytes, counted, number, percent, seconds};

use super::data::{Finding, Glance, Held, Holding, Idle, Lack, LackKind, LifeLine, Page, Report, Top, Weight, Words};
use crate::summary::{Amount, Origin};

/// Maximum number of sentences for a list.
const FIVE: usize = 5;

/// Adds all sentences to a report.
pub(super) fn add(report: &mut Report) {
    report.lacks = lacks(report);
    let others = [stale(report), exceptions(report), garbage(report), on_stack(report), unfilled(report), drag(report)];
    let mut findings: Vec<Finding> = growth(report).into_iter().chain(others.into_iter().flatten()).collect();
    findings.sort_by_key(|finding| finding.weight);
    report.findings = findings;
    report.tops = tops(report);
}

fn lacks(report: &Report) -> Vec<Lack> {
    let summary = &report.summary;
    let mut lacks = Vec::new();
    let mut add = |kind, why: String| lacks.push(Lack { kind, why });
    if summary.lost > 0 {
        add(LackKind::Events, format!("events are missing in the middle: {}", summary.lost_details));
    }
    if let Some(cut) = &summary.cut_off {
        add(LackKind::End, cut.clone());
    }
    if let Some(selected) = &summary.selected {
        add(LackKind::Others, format!("only what was allocated {}", selected.text()));
    }
    let has = |event: &str| summary.events.iter().any(|known| known == event);
    if !report.has_deaths {
        let why = match EventSet::ALL.names().all(has) {
            true => "the trace was read with --deaths none".to_owned(),
            false => format!("the classes have hooks for {} events only", summary.events.join(", ")),
        };
        add(LackKind::Deaths, why);
    }
    if !report.has_contexts {
        add(LackKind::Contexts, "the trace has no records of calls".to_owned());
    }
    if !has("exception") {
        add(LackKind::Exceptions, "the classes have no hooks for exceptions".to_owned());
    }
    if report.has_deaths && !report.has_uses {
        add(LackKind::Calls, "the classes have no hooks for methods".to_owned());
    }
    if report.has_deaths && report.has_uses && !report.has_witnesses {
        let why = "without --witness, an object counts as used when a method is called on it, when it is stored into, \
                   and when it is thrown or caught";
        add(LackKind::Reads, why.to_owned());
    }
    if summary.not_instrumented.classes > 0 {
        let classes = counted(summary.not_instrumented.classes as u64, "class");
        add(LackKind::Hooks, format!("{classes} without hooks"));
    }
    for problem in summary.problems.iter().filter(|problem| problem.is_serious()) {
        add(LackKind::Problem, format!("{} ({})", problem.what, number(problem.count)));
    }
    add(LackKind::Values, "Elephant Tracks records references, not values".to_owned());
    lacks
}

/// A name with a share of something, as a bar.
fn glance(name: impl Into<String>, figure: String, part: f64) -> Glance {
    Glance { name: name.into(), figure, part: part.clamp(0.0, 1.0), course: Vec::new() }
}

/// The same with bytes.
fn glance_of(name: impl Into<String>, part: u64, whole: u64) -> Glance {
    glance(name, percent(part, whole), share(part, whole))
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// `all 63,600`, `63,600 of 70,000`.
fn some_of(part: u64, whole: u64) -> String {
    if part == whole { format!("all {}", number(part)) } else { format!("{} of {}", number(part), number(whole)) }
}

fn live_at_the_end(report: &Report) -> u64 {
    report.alive.as_ref().and_then(|alive| alive.bytes.last().copied()).unwrap_or(0)
}

/// Maximum number of findings about objects that retain more and more.
const HOLDINGS: usize = 5;
/// What only classes of the JDK hold is reported if it is at least one in this many of the heap: they fill up as
/// classes are loaded.
const JDK_MATTERS: u64 = 10;

fn growth(report: &Report) -> Vec<Finding> {
    let live = live_at_the_end(report);
    let matters = |holding: &&Holding| holding.is_programs || holding.grown().saturating_mul(JDK_MATTERS) >= live;
    let holdings = report.suspects.holdings.iter().filter(matters).take(HOLDINGS);
    holdings.map(|holding| self::holding(holding, live)).collect()
}

fn holding(holding: &Holding, live: u64) -> Finding {
    let end = holding.course.last().copied().unwrap_or(0);
    let way = holding.ways.first().map(String::as_str).unwrap_or_default();
    let how_much = format!("{}, {} of the heap", bytes(end), percent(end, live));
    let at_peak = match bytes(holding.at_peak) {
        same if same == bytes(end) => String::new(),
        other => format!(" ({other} at the peak)"),
    };
    let mut says = match (holding.is_holder, &holding.held) {
        (true, _) => Words::new().code(way).text(" holds ").strong(how_much),
        (false, Some(held)) => several(held, holding, how_much),
        (false, None) => Words::new().text("Several objects hold ").code(&holding.class).text(", ").strong(how_much),
    };
    says = says.text(at_peak);
    if let Some(held) = holding.held.as_ref().filter(|_| holding.is_holder) {
        says = says.text(format!(": {} ", number(held.objects))).code(&held.class);
        says = put_there(says, held);
    }
    let middle = holding.course.first().copied().unwrap_or(0);
    says = says.text(match middle {
        0 => ". Halfway through the run there was none of it; it still grows at the end.".to_owned(),
        middle => format!(". Halfway through the run it was {}, and it still grows at the end.", bytes(middle)),
    });
    let weight = if holding.grown().saturating_mul(20) >= live { Weight::High } else { Weight::Medium };
    let of = holding.held.as_ref().map_or(&holding.class, |held| &held.class);
    let name = if holding.ways.is_empty() { &holding.class } else { &holding.ways.join(" and ") };
    let figure = format!("{}, {} of the heap", bytes(end), percent(end, live));
    let glance = Glance { course: holding.course.clone(), ..glance(name, figure, share(end, live)) };
    Finding { weight, title: format!("Memory that only grows: {of}"), glance, says, page: Page::Suspects }
}

/// `12,000 shop.Order, put there by shop.Orders.add:17, are held by static a and by static b together: 2 MiB, 40 % of the heap`
fn several(held: &Held, holding: &Holding, how_much: String) -> Words {
    let mut says = Words::new().text(format!("{} ", number(held.objects))).code(&held.class);
    says = put_there(says, held).text(if held.objects == 1 { ", is held by " } else { ", are held by " });
    for (index, way) in holding.ways.iter().enumerate() {
        says = says.text(if index == 0 { "" } else { " and by " }).code(way);
    }
    says.text(": ").strong(how_much)
}

fn put_there(says: Words, held: &Held) -> Words {
    let says = says.text(", made in ").code(&held.site);
    match &held.caller {
        Some(caller) => says.text(" for ").code(caller),
        None => says,
    }
}

fn stale(report: &Report) -> Option<Finding> {
    let all = &report.lifetimes.all;
    let is_much = all.alive.bytes > 0 && all.stale.bytes * 4 >= all.alive.bytes;
    if !report.has_deaths || !is_much {
        return None;
    }
    let most = report.lifetimes.classes.iter().max_by_key(|line| line.stale.bytes)?;
    let says = Words::new()
        .strong(format!("{} of what is alive at the end", percent(all.stale.bytes, all.alive.bytes)))
        .text(format!(" ({}) was not used in the second half of the run. Most of it is ", bytes(all.stale.bytes)))
        .code(&most.name)
        .text(format!(": {}, {}.", counted(most.stale.objects, "object"), bytes(most.stale.bytes)));
    let says = match &report.suspects.idle {
        Some(idle) => held_by(says, idle),
        None => says,
    };
    let name = report.suspects.idle.as_ref().map_or(&most.name, |idle| &idle.way);
    let figure = format!("{} of what is alive", percent(all.stale.bytes, all.alive.bytes));
    let glance = glance(name, figure, share(all.stale.bytes, all.alive.bytes));
    Some(Finding { weight: Weight::Medium, title: "Kept but not used".into(), glance, says, page: Page::Lifetimes })
}

/// `Most of these are held by static a → b. All that static a holds: 2 MiB, 3 MiB at the peak.`
fn held_by(says: Words, Idle { way, root, .. }: &Idle) -> Words {
    let says = says.text(" Most of these are held by ").code(way).text(". All that ").code(&root.root).text(" holds: ");
    let at_the_end = bytes(root.retained);
    match bytes(root.at_peak) {
        same if same == at_the_end => says.strong(same).text("."),
        other => says.strong(at_the_end).text(format!(", {other} at the peak.")),
    }
}

fn exceptions(report: &Report) -> Option<Finding> {
    let first = report.suspects.exceptions.iter().find(|line| line.is_control_flow)?;
    let caught = first.caught_in.as_deref().unwrap_or_default();
    let says = Words::new()
        .code(&first.thrown_in)
        .text(" throws ")
        .code(&first.class)
        .text(" ")
        .strong(format!("{} times", number(first.count)))
        .text(", and ")
        .code(caught)
        .text(format!(
            " catches it {:.1} methods further up. Each captures a stack trace: a return value may be enough.",
            first.frames
        ));
    let title = "Exceptions used as control flow".into();
    let glance =
        glance(&first.thrown_in, format!("{} times", number(first.count)), share(first.count, report.suspects.thrown));
    Some(Finding { weight: Weight::Low, title, glance, says, page: Page::Suspects })
}

fn garbage(report: &Report) -> Option<Finding> {
    let all = &report.lifetimes.all;
    let young = all.young.get(1)?;
    if !report.has_deaths || young.bytes == 0 {
        return None;
    }
    let most = report.lifetimes.sites.iter().max_by_key(|line| line.young.get(1).map(|young| young.bytes))?;
    let of_most = most.young.get(1)?;
    let says = Words::new()
        .strong(format!("{} of all bytes", percent(young.bytes, all.made.bytes)))
        .text(" die before another MiB is allocated. Most of them, ")
        .text(format!("{}, are ", bytes(of_most.bytes)))
        .code(&most.detail)
        .text(" made in ")
        .code(&most.name)
        .text(". A nursery collects them almost for free; not allocating them is cheaper still.");
    let figure = format!("{} of all bytes", percent(young.bytes, all.made.bytes));
    let glance = glance(&most.name, figure, share(young.bytes, all.made.bytes));
    Some(Finding { weight: Weight::Low, title: "Garbage".into(), glance, says, page: Page::Allocation })
}

fn on_stack(report: &Report) -> Option<Finding> {
    let all = &report.lifetimes.all;
    if all.on_stack.bytes * 5 < all.made.bytes || !report.has_contexts || !report.has_deaths {
        return None;
    }
    let most = report.lifetimes.sites.iter().max_by_key(|line| line.on_stack.bytes)?;
    let says = Words::new()
        .strong(format!("{} of all bytes", percent(all.on_stack.bytes, all.made.bytes)))
        .text(" die in the method that allocated them, and no other thread saw them: an optimizing compiler could keep them on the stack. Most are ")
        .code(&most.detail)
        .text(" made in ")
        .code(&most.name)
        .text(".");
    let figure = format!("{} of all bytes", percent(all.on_stack.bytes, all.made.bytes));
    let glance = glance(&most.name, figure, share(all.on_stack.bytes, all.made.bytes));
    Some(Finding { weight: Weight::Low, title: "Could live on the stack".into(), glance, says, page: Page::Lifetimes })
}

fn unfilled(report: &Report) -> Option<Finding> {
    let wasted: u64 = report.suspects.arrays.iter().map(|line| line.fill.wasted_bytes).sum();
    let first = report.suspects.arrays.first()?;
    if wasted * 20 < report.summary.allocated.bytes {
        return None;
    }
    let says = Words::new()
        .strong(format!("{} of elements", bytes(wasted)))
        .text(" of arrays were never filled. Most are in ")
        .code(&first.owner)
        .text(format!(
            ": {} of {} arrays were filled by a quarter or less.",
            number(first.fill.sparse),
            number(first.fill.arrays.objects)
        ));
    let glance = glance(&first.owner, bytes(wasted), share(wasted, report.summary.allocated.bytes));
    Some(Finding { weight: Weight::Low, title: "Unused array capacity".into(), glance, says, page: Page::Suspects })
}

fn drag(report: &Report) -> Option<Finding> {
    let all = &report.lifetimes.all;
    if !report.has_deaths || all.drag_share < 0.5 {
        return None;
    }
    let most = report.lifetimes.classes.iter().max_by(|a, b| a.drag_byte_ticks.total_cmp(&b.drag_byte_ticks))?;
    let says = Words::new()
        .text("Objects that died spent ")
        .strong(format!("{:.0} %", all.drag_share * 100.0))
        .text(" of their time in memory after their last use, weighted by size. Most of it is due to ")
        .code(&most.name)
        .text(". Dropping them sooner makes the heap smaller.");
    let figure = format!("{:.0} % of their time", all.drag_share * 100.0);
    let glance = glance(&most.name, figure, all.drag_share);
    Some(Finding { weight: Weight::Low, title: "Drag".into(), glance, says, page: Page::Lifetimes })
}

fn tops(report: &Report) -> Vec<Top> {
    let all = [top_classes(report), top_sites(report), top_packages(report), top_alive(report), top_growing(report)];
    let more = [
        top_young(report),
        top_drag(report),
        top_unused(report),
        top_threads(report),
        top_exceptions(report),
        top_arrays(report),
        top_pauses(report),
    ];
    all.into_iter().chain(more).filter(|top| !top.says.is_empty()).collect()
}

fn top(title: &str, means: &str, page: Page, entries: impl Iterator<Item = (Glance, Words)>) -> Top {
    let (glances, says) = entries.take(FIVE).unzip();
    Top { title: title.into(), means: means.into(), page, glances, says }
}

/// Bars of amounts of which there is no whole: the longest is that of the largest.
fn by_largest(mut top: Top, amounts: impl Iterator<Item = f64>) -> Top {
    let amounts: Vec<f64> = amounts.take(FIVE).collect();
    let largest = amounts.iter().copied().fold(0.0, f64::max);
    for (glance, amount) in top.glances.iter_mut().zip(amounts).filter(|_| largest > 0.0) {
        glance.part = amount / largest;
    }
    top
}

/// Formats an amount: `63,600 objects, 1.5 MiB`.
fn amount(amount: Amount) -> String {
    format!("{}, {}", counted(amount.objects, "object"), bytes(amount.bytes))
}

fn top_classes(report: &Report) -> Top {
    let whole = report.summary.allocated.bytes;
    let says = report.lifetimes.classes.iter().map(|line| {
        let words = Words::new()
            .code(&line.name)
            .text(" takes ")
            .strong(percent(line.made.bytes, whole))
            .text(format!(" of all bytes allocated: {}", amount(line.made)));
        let words = match report.has_deaths {
            true => words.text(format!(", {} alive at the end.", some_of(line.alive.objects, line.made.objects))),
            false => words.text("."),
        };
        (glance_of(&line.name, line.made.bytes, whole), words)
    });
    top("Classes", "Most bytes allocated", Page::Lifetimes, says)
}

fn top_sites(report: &Report) -> Top {
    let whole = report.summary.allocated.bytes;
    let says = report.lifetimes.sites.iter().map(|line| {
        let words = Words::new()
            .code(&line.name)
            .text(" allocates ")
            .strong(percent(line.made.bytes, whole))
            .text(" of all bytes, as ")
            .code(&line.detail)
            .text(format!(": {}", amount(line.made)));
        let words = match report.has_deaths {
            true => words.text(format!(
                "; {} die before another MiB is allocated.",
                percent(line.young.get(1).map_or(0, |young| young.objects), line.made.objects)
            )),
            false => words.text("."),
        };
        (glance_of(&line.name, line.made.bytes, whole), words)
    });
    top("Sites", "Lines of code that allocate the most", Page::Allocation, says)
}

fn top_packages(report: &Report) -> Top {
    let whole = report.summary.allocated.bytes;
    let mut packages: Vec<_> = report.summary.packages.iter().collect();
    packages.sort_by_key(|line| std::cmp::Reverse(line.amount.bytes));
    let says = packages.into_iter().map(|line| {
        let whose = match line.origin {
            Origin::Program => "of the program",
            Origin::Library => "of a library",
            Origin::Jdk => "of the JDK",
        };
        let words = Words::new()
            .code(&line.package)
            .text(format!(", {whose}, asked for "))
            .strong(percent(line.amount.bytes, whole))
            .text(format!(" of all bytes, including what the JDK allocated for it: {}.", amount(line.amount)));
        (glance_of(&line.package, line.amount.bytes, whole), words)
    });
    top("Packages", "Whose code allocates", Page::Allocation, says)
}

fn top_alive(report: &Report) -> Top {
    let live = live_at_the_end(report);
    let mut lines: Vec<&LifeLine> = report.lifetimes.classes.iter().filter(|line| line.alive.bytes > 0).collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.alive.bytes));
    let says = lines.into_iter().filter(|_| report.has_deaths).map(|line| {
        let words = Words::new()
            .code(&line.name)
            .text(" has ")
            .strong(percent(line.alive.bytes, live))
            .text(format!(" of what is alive at the end: {}. ", amount(line.alive)))
            .text(match line.stale.bytes * 2 >= line.alive.bytes {
                true => "Most of it was not used in the second half of the run.",
                false => "",
            });
        (glance_of(&line.name, line.alive.bytes, live), words)
    });
    top("Alive at the end", "What fills the heap when the program ends", Page::Alive, says)
}

fn top_growing(report: &Report) -> Top {
    let live = live_at_the_end(report);
    let says = report.suspects.holdings.iter().map(|holding| {
        let course = [holding.course.first(), holding.course.last()].map(|bytes| bytes.copied().unwrap_or(0));
        let words = match holding.is_holder {
            true => Words::new().code(holding.ways.join(" and ")).text(" keeps growing"),
            false => Words::new().code(&holding.class).text(" keeps growing, held by several objects"),
        };
        let words = words.text(": ").strong(format!("{} → {}", bytes(course[0]), bytes(course[1])));
        let words = words.text(" from the middle of the run to its end");
        let words = match &holding.held {
            Some(held) => words.text(", most of it ").code(&held.class).text("."),
            None => words.text("."),
        };
        let name = if holding.is_holder { holding.ways.join(" and ") } else { holding.class.clone() };
        let figure = format!("{} → {}", bytes(course[0]), bytes(course[1]));
        (Glance { course: holding.course.clone(), ..glance(name, figure, share(course[1], live)) }, words)
    });
    top("Growing", "What keeps growing to the end of the run, as leaks do", Page::Suspects, says)
}

fn top_young(report: &Report) -> Top {
    let whole = report.summary.allocated.bytes;
    let mut lines: Vec<&LifeLine> = report.lifetimes.sites.iter().filter(|line| line.on_stack.bytes > 0).collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.on_stack.bytes));
    let says = lines.into_iter().filter(|_| report.has_contexts && report.has_deaths).map(|line| {
        let words = Words::new()
            .strong(percent(line.on_stack.objects, line.made.objects))
            .text(" of the objects of ")
            .code(&line.name)
            .text(" (")
            .code(&line.detail)
            .text(format!(") die in the method that made them: {}.", amount(line.on_stack)));
        (glance_of(&line.name, line.on_stack.bytes, whole), words)
    });
    top("Could live on the stack", "Objects that never leave their method or their thread", Page::Lifetimes, says)
}

fn top_drag(report: &Report) -> Top {
    let mut lines: Vec<&LifeLine> = report.lifetimes.sites.iter().filter(|line| line.drag_byte_ticks > 0.0).collect();
    lines.sort_by(|a, b| b.drag_byte_ticks.total_cmp(&a.drag_byte_ticks));
    let says = lines.into_iter().filter(|_| report.has_deaths).map(|line| {
        let words = Words::new()
            .code(&line.detail)
            .text(" of ")
            .code(&line.name)
            .text(" spends ")
            .strong(format!("{:.0} %", line.drag_share * 100.0))
            .text(" of its time in memory after the last use.");
        (glance(&line.name, format!("{:.0} %", line.drag_share * 100.0), line.drag_share), words)
    });
    top("Drag", "Memory that is kept after its last use", Page::Lifetimes, says)
}

fn top_unused(report: &Report) -> Top {
    let whole = report.summary.allocated.bytes;
    let mut lines: Vec<&LifeLine> = report.lifetimes.sites.iter().filter(|line| line.unused.bytes > 0).collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.unused.bytes));
    let says = lines.into_iter().map(|line| {
        let words = Words::new()
            .strong(percent(line.unused.objects, line.usable.objects))
            .text(" of the ")
            .code(&line.detail)
            .text(" made in ")
            .code(&line.name)
            .text(format!(" never had a method called on them after construction: {}.", amount(line.unused)));
        (glance_of(&line.name, line.unused.bytes, whole), words)
    });
    let means = match report.has_witnesses {
        true => "Objects that were never read or called after construction",
        false => {
            "Objects on which no method was called after construction; reads of their fields are not in this trace"
        }
    };
    top("Unused after construction", means, Page::Lifetimes, says)
}

fn top_threads(report: &Report) -> Top {
    let whole = report.summary.allocated.bytes;
    let mut threads: Vec<_> = report.summary.threads.iter().filter(|line| line.allocated.bytes > 0).collect();
    threads.sort_by_key(|line| std::cmp::Reverse(line.allocated.bytes));
    let says = threads.into_iter().map(|line| {
        let name = if line.name.is_empty() { "a thread without a name" } else { &line.name };
        let words = Words::new()
            .code(name)
            .text(" allocates ")
            .strong(percent(line.allocated.bytes, whole))
            .text(format!(" of all bytes: {}.", amount(line.allocated)));
        (glance_of(name, line.allocated.bytes, whole), words)
    });
    top("Threads", "Most bytes allocated", Page::Threads, says)
}

fn top_exceptions(report: &Report) -> Top {
    let says = report.suspects.exceptions.iter().map(|line| {
        let words = Words::new()
            .code(&line.class)
            .text(" is thrown ")
            .strong(counted(line.count, "time"))
            .text(" in ")
            .code(&line.thrown_in);
        let words = match &line.caught_in {
            Some(method) => words.text(" and caught in ").code(method).text(match line.is_control_flow {
                true => ": so often and so near that it looks like control flow.",
                false => ".",
            }),
            None => words.text(" and not caught by any instrumented method."),
        };
        let name = format!("{} in {}", line.class, line.thrown_in);
        (glance(name, counted(line.count, "time"), share(line.count, report.suspects.thrown)), words)
    });
    top("Exceptions", "Thrown most often", Page::Suspects, says)
}

fn top_arrays(report: &Report) -> Top {
    let lines = report.suspects.arrays.iter().filter(|line| line.fill.wasted_bytes > 0);
    let says = lines.clone().map(|line| {
        let words = Words::new()
            .text("Arrays of ")
            .code(&line.owner)
            .text(format!(" use {} of {} elements: ", number(line.fill.filled), number(line.fill.slots)))
            .strong(bytes(line.fill.wasted_bytes))
            .text(format!(
                " were never filled; {} never held anything.",
                some_of(line.fill.empty, line.fill.arrays.objects)
            ));
        (glance(&line.owner, bytes(line.fill.wasted_bytes), 0.0), words)
    });
    let top = top("Arrays never filled", "Capacity for references that was never used", Page::Suspects, says);
    by_largest(top, lines.map(|line| line.fill.wasted_bytes as f64))
}

fn top_pauses(report: &Report) -> Top {
    let mut gcs: Vec<_> = report.summary.gcs.iter().collect();
    gcs.sort_by(|a, b| b.pause_seconds.total_cmp(&a.pause_seconds));
    let says = gcs.iter().map(|gc| {
        let words = Words::new()
            .text(format!("At {} the program waited ", seconds(gc.start_seconds)))
            .strong(seconds(gc.pause_seconds))
            .text(format!(" for a collection, after which {} of heap were in use.", bytes(gc.heap_used_bytes)));
        (glance(format!("at {}", seconds(gc.start_seconds)), seconds(gc.pause_seconds), 0.0), words)
    });
    let top = top("Collections", "The longest pauses, with tracing on", Page::Threads, says);
    by_largest(top, gcs.iter().map(|gc| gc.pause_seconds))
}
