//! Live memory and resident memory over time.

use et_simulate::allocate::AllocateReport;

use crate::chart::{Chart, Series, side_by_side};

/// Two charts side by side, as SVG: bytes, and their ratio.
pub fn draw(trace: &str, reports: &[AllocateReport]) -> String {
    let mebi = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let (mut sizes, mut ratios) = (Vec::new(), Vec::new());
    if let Some(first) = reports.first() {
        let points = first.samples.iter().map(|sample| (sample.operation as f64, mebi(sample.live_bytes)));
        sizes.push(Series { name: "alive".into(), points: points.collect(), ..Series::default() });
        let ones = first.samples.iter().map(|sample| (sample.operation as f64, 1.0));
        // An additional series, so that allocators have the same colors in both charts.
        ratios.push(Series { name: "alive".into(), points: ones.collect(), ..Series::default() });
    }
    for report in reports {
        let name = &report.allocator;
        let points = report.samples.iter().map(|sample| (sample.operation as f64, mebi(sample.footprint_bytes)));
        sizes.push(Series { name: name.clone(), points: points.collect(), ..Series::default() });
        let alive = report.samples.iter().filter(|sample| sample.live_bytes > 0);
        let ratio = alive.map(|one| (one.operation as f64, one.footprint_bytes as f64 / one.live_bytes as f64));
        ratios.push(Series { name: name.clone(), points: ratio.collect(), ..Series::default() });
    }
    let chart =
        |title: String, y: &str, series, is_log| Chart { title, x: "operation".into(), y: y.into(), series, is_log };
    side_by_side(&[
        chart(format!("{trace}: memory"), "MiB", sizes, false),
        chart(format!("{trace}: memory by what is alive"), "ratio", ratios, true),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_simulate::allocate::{System, allocate};
    use et_simulate::testing::{death, node, reader_of};

    #[test]
    fn each_allocator_has_its_curve() {
        let report = allocate::<System>(&mut reader_of(&[node(1), node(2), death(1)]), "system").unwrap();
        let svg = draw("t", std::slice::from_ref(&report));
        assert!(svg.starts_with("<svg") && svg.contains("system"), "{svg}");
    }
}
