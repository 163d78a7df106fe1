//! Line charts as SVG.

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

/// A line.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points (x, y) from left to right.
    pub points: Vec<(f64, f64)>,
    /// Vertical error bars: x, lower y, upper y.
    pub bars: Vec<(f64, f64, f64)>,
}

/// A line chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Title above the chart.
    pub title: String,
    /// Label of the x axis, with the unit.
    pub x: String,
    /// Label of the y axis, with the unit.
    pub y: String,
    /// The lines.
    pub series: Vec<Series>,
    /// Whether the y axis is logarithmic.
    pub is_log: bool,
}

const SIZE: (u32, u32) = (900, 460);
/// Width of the legend in pixels, part of the chart's width; it is beside the plot, where it covers no lines.
const NAMES: u32 = 180;
/// Colors for color-blind readers (Okabe and Ito), and two more.
const COLORS: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(120, 120, 120),
    RGBColor(160, 140, 0),
    RGBColor(0, 0, 0),
    RGBColor(110, 60, 160),
];

/// An SVG document with the charts in a row.
pub fn side_by_side(charts: &[Chart]) -> String {
    let mut text = String::new();
    {
        let size = (SIZE.0 * charts.len().max(1) as u32, SIZE.1);
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let pieces = root.split_evenly((1, charts.len().max(1)));
        // Drawing into a string cannot fail.
        let _ = root.fill(&WHITE);
        for (chart, area) in charts.iter().zip(pieces) {
            let _ = draw(chart, &area);
        }
        let _ = root.present();
    }
    text
}

type Drawn<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

fn draw<B: DrawingBackend>(chart: &Chart, area: &DrawingArea<B, Shift>) -> Drawn<B> {
    let of = |series: &Series| {
        let ends = series.bars.iter().flat_map(|&(at, low, high)| [(at, low), (at, high)]);
        series.points.iter().copied().chain(ends).collect::<Vec<_>>()
    };
    let all = || chart.series.iter().flat_map(of).filter(|point| is_shown(chart, point));
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold(None, |range: Option<(f64, f64)>, value| match range {
            Some((least, most)) => Some((least.min(value), most.max(value))),
            None => Some((value, value)),
        })
    };
    let (left, right) = range(&mut all().map(|point| point.0)).unwrap_or((0.0, 1.0));
    let (low, high) = range(&mut all().map(|point| point.1)).unwrap_or((0.1, 1.0));
    let right = if right > left { right } else { left + 1.0 };
    let mut builder = ChartBuilder::on(area);
    builder
        .caption(&chart.title, ("sans-serif", 18))
        .margin(12)
        .margin_right(NAMES)
        .x_label_area_size(44)
        .y_label_area_size(72);
    if chart.is_log {
        let (low, high) = (low * 0.8, high * 1.25);
        let range = (low..high).log_scale().with_key_points(marks(low, high));
        mesh(chart, builder.build_cartesian_2d(left..right, range)?)?;
    } else {
        let high = if high > 0.0 { high * 1.05 } else { 1.0 };
        mesh(chart, builder.build_cartesian_2d(left..right, 0.0..high)?)?;
    }
    names(chart, area)
}

/// Draws the legend beside the plot.
fn names<B: DrawingBackend>(chart: &Chart, area: &DrawingArea<B, Shift>) -> Drawn<B> {
    let left = area.dim_in_pixel().0.saturating_sub(NAMES - 12) as i32;
    for ((series, color), row) in chart.series.iter().zip(COLORS.iter().cycle()).zip(0..) {
        let y = 52 + row * 18;
        area.draw(&PathElement::new([(left, y), (left + 18, y)], color.stroke_width(2)))?;
        area.draw(&Text::new(series.name.clone(), (left + 24, y - 6), ("sans-serif", 12)))?;
    }
    Ok(())
}

/// Tick marks of a logarithmic axis. In a narrow range there are too few powers of ten, so multiples are added.
fn marks(low: f64, high: f64) -> Vec<f64> {
    let of = |digits: &[f64]| -> Vec<f64> {
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
        all.filter(|mark| (low..=high).contains(mark)).collect()
    };
    let (few, more) = (of(&[1.0, 2.0, 5.0]), of(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]));
    let powers = of(&[1.0]);
    match (powers.len(), few.len()) {
        (4.., _) => powers,
        (_, 3..) => few,
        _ => more,
    }
}

/// Whether the point can be drawn: a logarithmic axis has no 0.
fn is_shown(chart: &Chart, point: &(f64, f64)) -> bool {
    point.0.is_finite() && point.1.is_finite() && (!chart.is_log || point.1 > 0.0)
}

fn mesh<'a, B, X, Y>(chart: &Chart, mut context: ChartContext<'a, B, Cartesian2d<X, Y>>) -> Drawn<B>
where
    B: DrawingBackend + 'a,
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let label = |value: &f64| short(*value);
    context
        .configure_mesh()
        .x_desc(&chart.x)
        .y_desc(&chart.y)
        .x_label_formatter(&label)
        .y_label_formatter(&label)
        .light_line_style(WHITE)
        .draw()?;
    for (series, color) in chart.series.iter().zip(COLORS.iter().cycle()) {
        let shown = series.points.iter().copied().filter(|point| is_shown(chart, point));
        context.draw_series(LineSeries::new(shown, color.stroke_width(2)))?;
        for &(at, low, high) in &series.bars {
            let ends = [(at, low), (at, high)];
            if ends.iter().all(|end| is_shown(chart, end)) {
                context.draw_series([PathElement::new(ends, color.stroke_width(1))])?;
            }
        }
    }
    Ok(())
}

/// A short form: `1.5`, `200`, `3G`.
fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        large if large >= 1e9 => (value / 1e9, "G"),
        large if large >= 1e6 => (value / 1e6, "M"),
        large if large >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = if value.abs() >= 100.0 || value == 0.0 { 0 } else { 3 };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>, is_log: bool) -> Chart {
        let bars = points.iter().map(|&(at, value)| (at, value / 2.0, value * 2.0)).collect();
        let series = vec![Series { name: "a<b".into(), points, bars }];
        Chart { title: "t & u".into(), x: "x".into(), y: "y".into(), series, is_log }
    }

    #[test]
    fn whatever_the_points_it_is_a_document() {
        for is_log in [false, true] {
            for points in [
                vec![],
                vec![(1.0, 0.0)],
                vec![(1.0, 3.0)],
                vec![(1.0, 2.0), (2.0, 5.0)],
                vec![(1.0, f64::NAN), (2.0, f64::INFINITY), (3.0, 1.0)],
            ] {
                let svg = side_by_side(&[chart(points.clone(), is_log), chart(points, is_log)]);
                assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
                assert!(svg.contains("t &amp; u") && !svg.contains("a<b"), "{svg}");
            }
        }
    }

    #[test]
    fn a_logarithmic_axis_has_marks_between_powers_of_ten() {
        assert_eq!(marks(4.0, 120.0), [5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(marks(2.4, 3.75), [3.0]);
        assert_eq!(marks(8.0, 30.0), [8.0, 9.0, 10.0, 15.0, 20.0, 30.0]);
        assert_eq!(marks(0.5, 5000.0), [1.0, 10.0, 100.0, 1000.0]);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 0.25, 1.5, 200.0, 12_000.0, 3e9].map(short), ["0", "0.25", "1.5", "200", "12k", "3G"]);
    }
}
