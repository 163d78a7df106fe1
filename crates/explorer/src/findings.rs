//! What stands out in a run, each with where to look.

use et_analysis::report::{Report, Weight};
use et_names::shell::quoted;
use et_names::units::{bytes, number};
use et_reader::model::Node;
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::to_value;
use crate::opened::{Moment, Opened};
use crate::params::Refused;

/// Findings of a kind.
const EACH: usize = 12;

/// Something that stands out.
#[derive(Debug, Serialize)]
struct Finding {
    title: String,
    text: String,
    weight: Weight,
    class: Option<String>,
    site: Option<String>,
    /// Id of the object that it is about.
    object: Option<String>,
    bytes: Option<u64>,
    /// Bytes over the run: live, or retained.
    curve: Option<Vec<u64>>,
}

/// The findings of the report, which has been worked out.
pub(crate) fn answer(trace: &'static Opened) -> Result<Value, Refused> {
    let report = trace.report()?;
    let end = if report.suspects.holdings.is_empty() { None } else { Some(trace.moment(u64::MAX)?) };
    let mut findings = holdings(&report, end.as_deref());
    findings.extend(growing(&report));
    findings.extend(report.findings.iter().map(|finding| Finding {
        title: finding.title.clone(),
        text: finding.says.plain(),
        weight: finding.weight,
        class: None,
        site: None,
        object: None,
        bytes: None,
        curve: None,
    }));
    findings.sort_by_key(|finding| finding.weight);
    let command = format!("et-trace report {} --show suspects", quoted(trace.path()));
    let lacks = to_value(&report.lacks)?;
    Ok(json!({ "findings": to_value(&findings)?, "lacks": lacks, "command": command }))
}

/// Objects that retain more and more.
fn holdings(report: &Report, end: Option<&Moment>) -> Vec<Finding> {
    let finding = |holding: &et_analysis::report::Holding| {
        let way = holding.ways.first().cloned().unwrap_or_else(|| holding.class.clone());
        let grown = bytes(holding.grown());
        let mut text = format!("{} at the end, {grown} more than at half of the run", bytes(holding.retained));
        if let Some(held) = &holding.held {
            let (objects, new) = (number(held.objects), number(held.new));
            text.push_str(&format!("; {objects} {}, {new} of them new, made at {}", held.class, held.site));
            if let Some(caller) = &held.caller {
                text.push_str(&format!(" for {caller}"));
            }
        }
        Finding {
            title: format!("{way} holds more and more"),
            text,
            weight: if holding.is_programs { Weight::High } else { Weight::Medium },
            class: Some(holding.held.as_ref().map_or(&holding.class, |held| &held.class).clone()),
            site: holding.held.as_ref().map(|held| held.site.clone()),
            object: end.filter(|_| holding.is_holder).and_then(|end| largest(end, &holding.class, holding.retained)),
            bytes: Some(holding.retained),
            curve: Some(holding.course.clone()),
        }
    };
    report.suspects.holdings.iter().take(EACH).map(finding).collect()
}

/// The object of a class that retains so much, or of all of the class the one that retains most.
fn largest(end: &Moment, class: &str, retained: u64) -> Option<String> {
    let of = |node: &Node| end.dominance.retained[node.0 as usize];
    let nodes = end.resident.snapshot.nodes().map(|(node, _)| node);
    let all = nodes.filter(|&node| end.resident.snapshot.class_text(node) == class);
    let node = all.max_by_key(|node| (of(node) == retained, of(node)))?;
    Some(format!("{:x}", end.resident.snapshot.object(node).id.0))
}

/// Sites whose objects only become more.
fn growing(report: &Report) -> Vec<Finding> {
    let growing = report.suspects.growing.iter().filter(|growth| growth.still_grows);
    let finding = |growth: &et_analysis::report::Growth| {
        let (middle, end) = (growth.middle, growth.end);
        let mut text = format!(
            "{} in {} objects at the end, {} at half of the run",
            bytes(end.bytes),
            number(end.objects),
            bytes(middle.bytes)
        );
        if let Some(caller) = &growth.caller {
            text.push_str(&format!("; asked for by {caller}"));
        }
        if let Some(holder) = growth.stored_in.first() {
            text.push_str(&format!("; stored into {}", holder.field));
        }
        Finding {
            title: format!("{} from {} become more and more", growth.class, growth.site),
            text,
            weight: Weight::Medium,
            class: Some(growth.class.clone()),
            site: Some(growth.site.clone()),
            object: None,
            bytes: Some(end.bytes),
            curve: Some(growth.bytes.clone()),
        }
    };
    growing.take(EACH).map(finding).collect()
}
