//! How long objects are kept after their last use (`docs/semantics.md`, "Drag").

/// Ticks between the last use of an object and its death. `None` for objects alive at the end, whose future is unknown,
/// and for initial objects, whose earlier uses are unknown.
pub(crate) fn ticks(is_initial: bool, last_use: u64, death: Option<u64>) -> Option<u64> {
    death.filter(|_| !is_initial).map(|death| death.saturating_sub(last_use))
}

#[cfg(test)]
mod tests {
    use et_reader::Trace;
    use et_reader::population::Columns;
    use et_reader::record::AllocKind;
    use et_reader::source::{Reading, Source};

    use crate::profile;
    use crate::testing::{report_of, summarize};

    /// A run of a real program, without the names of the JDK.
    const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/tests/traces/version-1.trace");

    #[test]
    fn all_commands_mean_the_same_by_it() {
        let (source, reading) = (Source::from(Trace::open(REAL.as_ref()).unwrap()), Reading::default());
        let population = et_lives::population(&source, None, reading).unwrap();
        let mut by_rows = 0;
        for group in 0..population.groups.len() {
            let rows = population.groups.read(group, Columns::ALL).unwrap();
            for row in (0..rows.len).filter(|&row| rows.kind[row] != AllocKind::Initial) {
                let ticks = rows.death_tick[row].map_or(0, |death| death - rows.last_use_tick[row]);
                by_rows += ticks * rows.size[row];
            }
        }
        assert!(by_rows > 0);
        let of_summary = summarize(&source, reading, 5).unwrap().lifetimes.unwrap();
        assert_eq!(of_summary.drag_byte_ticks, Some(by_rows));
        let profile = profile::profile(&population, source.naming(), 1 << 20).unwrap();
        // Each cell is rounded down to thousands.
        let least = (by_rows / 1000).saturating_sub(profile.cells.len() as u64);
        assert!((least..=by_rows / 1000).contains(&profile.total.drag), "{} of {by_rows}", profile.total.drag);
        assert!(profile.cells.iter().all(|(origin, cell)| !origin.is_initial || cell.drag == 0));
        let report = report_of(&source, reading, 5);
        assert_eq!(report.lifetimes.all.drag_byte_ticks as u64, by_rows);
    }
}
