//! The tables of `cargo xtask verify-world`.

use std::collections::BTreeMap;

use super::jars::RewrittenJar;
use super::{JarsResult, JdkResult, Rewriting};
use xtask::linking::Failure;

/// All tables as one text.
pub fn markdown(jdks: &[JdkResult], jars: &[RewrittenJar], of_jars: &[JarsResult], notes: &[String]) -> String {
    let mut text = String::from("`cargo xtask verify-world`\n");
    if !jdks.is_empty() {
        text += "\n| JDK | classes | methods | hooks | shortfalls | link | link neither plain nor rewritten | failures | s |\n";
        text += "|---|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    }
    for jdk in jdks {
        text += &format!(
            "| {} | {} | {} | {} | {} | {:.0} |\n",
            jdk.version,
            figures(&jdk.rewriting),
            jdk.comparison.all_linked(),
            jdk.comparison.cannot_link,
            jdk.comparison.failures.len(),
            jdk.seconds
        );
    }
    if !of_jars.is_empty() {
        text += &format!("\n{} jars on each JDK:\n\n", jars.len());
        text += "| on JDK | link | link neither plain nor rewritten | failures | s |\n|---|--:|--:|--:|--:|\n";
    }
    for result in of_jars {
        let comparison = &result.comparison;
        let (linked, other, failed) = (comparison.all_linked(), comparison.cannot_link, comparison.failures.len());
        text += &format!("| {} | {linked} | {other} | {failed} | {:.0} |\n", result.version, result.seconds);
    }
    if !notes.is_empty() {
        text += &format!("\n- {}\n", notes.join("\n- "));
    }
    text += &failures(jdks, jars, of_jars);
    text += &shortfalls(jdks, jars);
    if !jars.is_empty() {
        text += &format!("\n<details>\n<summary>Each jar</summary>\n{}\n</details>\n", each_jar(jars, of_jars));
    }
    text
}

fn figures(rewriting: &Rewriting) -> String {
    let Rewriting { classes, methods, hooks, shortfalls, .. } = rewriting;
    format!("{classes} | {methods} | {hooks} | {}", shortfalls.len())
}

fn failures(jdks: &[JdkResult], jars: &[RewrittenJar], of_jars: &[JarsResult]) -> String {
    let of_jdks = jdks.iter().map(|jdk| (&jdk.version, &jdk.comparison.failures));
    let all = of_jdks.chain(of_jars.iter().map(|result| (&result.version, &result.comparison.failures)));
    let line = |version: &String, failure: &Failure| {
        let Failure { jar, class, before, after } = failure;
        format!("- JDK {version}, {jar}, `{class}`: {after} (plain: {before})\n")
    };
    let lines: String = all.flat_map(|(version, failures)| failures.iter().map(move |f| line(version, f))).collect();
    let unread = jars.iter().filter_map(|jar| Some(format!("- {}: {}\n", jar.name, jar.failure.as_ref()?)));
    let lines = lines + &unread.collect::<String>();
    if lines.is_empty() { "\nFailures: none.\n".into() } else { format!("\nFailures:\n\n{lines}") }
}

/// Groups shortfalls by the missing hooks and the reason, without the sizes in reasons, which differ between methods.
fn shortfalls(jdks: &[JdkResult], jars: &[RewrittenJar]) -> String {
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    let all = jdks.iter().map(|jdk| &jdk.rewriting).chain(jars.iter().map(|jar| &jar.rewriting));
    for shortfall in all.flat_map(|rewriting| &rewriting.shortfalls) {
        *counts.entry((shortfall.hooks.clone(), without_numbers(&shortfall.why))).or_default() += 1;
    }
    if counts.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n| methods | went without | why |\n|--:|---|---|\n");
    for ((hooks, why), count) in counts {
        text += &format!("| {count} | {hooks} | {why} |\n");
    }
    text
}

fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' if out.ends_with('N') => {}
            '0'..='9' => out.push('N'),
            other => out.push(other),
        }
    }
    out
}

fn each_jar(jars: &[RewrittenJar], of_jars: &[JarsResult]) -> String {
    let mut text = String::from("\n| jar | classes | methods | hooks | shortfalls |");
    for result in of_jars {
        text += &format!(" link on {} |", result.feature);
    }
    text += " failures | s |\n|---|--:|--:|--:|--:|";
    text += &"--:|".repeat(of_jars.len());
    text += "--:|--:|\n";
    for jar in jars {
        text += &format!("| {} | {} |", jar.name, figures(&jar.rewriting));
        let mut failed = usize::from(jar.failure.is_some());
        for result in of_jars {
            text += &format!(" {} |", result.comparison.linked.get(&jar.name).copied().unwrap_or_default());
            failed += result.comparison.failures.iter().filter(|failure| failure.jar == jar.name).count();
        }
        text += &format!(" {failed} | {:.1} |\n", jar.seconds);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_without_their_numbers() {
        assert_eq!(without_numbers("the code would have 65720 bytes of 65535"), "the code would have N bytes of N");
    }
}
