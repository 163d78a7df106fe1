//! The tables of `cargo xtask completeness`.

use xtask::completeness::{Class, Comparison};

use super::Options;

/// A percentage, such as `99.97 %`.
pub fn share(part: u64, whole: u64) -> String {
    // Rounded down, so that 100 % means all objects.
    let hundredths = if whole == 0 { 10_000 } else { part as u128 * 10_000 / u128::from(whole) };
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// The sums of each program, for the docs.
pub fn overview(options: &Options, results: &[(&str, String, Comparison)], notes: &[String]) -> String {
    let mut text = format!("`cargo xtask completeness --scale {}`\n\n", options.tour.scale);
    text += "| program | JDK | made | recorded | missing | share | found later | not counted |\n";
    text += "|---|---|--:|--:|--:|--:|--:|--:|\n";
    for (program, version, all) in results {
        let (made, recorded) = (all.made(), all.recorded());
        text += &format!(
            "| {program} | {version} | {made} | {recorded} | {} | {} | {} | {} |\n",
            made - recorded,
            share(recorded, made),
            all.found(),
            all.surplus()
        );
    }
    for note in notes {
        text += &format!("\n{note}\n");
    }
    text
}

/// The classes with the most missing objects, for each program.
pub fn by_class(options: &Options, results: &[(&str, String, Comparison)]) -> String {
    let mut text = String::new();
    for (program, version, all) in results {
        let worst: Vec<&Class> = all.classes.iter().filter(|class| class.missing() > 0).take(options.top).collect();
        if worst.is_empty() {
            continue;
        }
        text += &format!("\n### {program} on {version}\n\n");
        text +=
            "| class | made | recorded | missing | share of all missing | found later |\n|---|--:|--:|--:|--:|--:|\n";
        let missing = all.made() - all.recorded();
        for class in worst {
            text += &format!(
                "| `{}` | {} | {} | {} | {} | {} |\n",
                class.name,
                class.made,
                class.kinds.at_birth,
                class.missing(),
                share(class.missing(), missing),
                class.kinds.found
            );
            for (objects, frames) in class.stacks.iter().take(6) {
                text += &format!("|   {objects} at `{frames}` | | | | | |\n");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_cut() {
        assert_eq!(share(99_999, 100_000), "99.99 %");
        assert_eq!(share(0, 0), "100.00 %");
        assert_eq!(share(1, 3), "33.33 %");
    }
}
