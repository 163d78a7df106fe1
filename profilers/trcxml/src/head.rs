//! Where a log comes from, and where it ends.

use std::time::Duration;

use crate::Element;

/// Beginning of a log.
pub const START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<TRACE>\n";
/// End of a log.
pub const END: &str = "</TRACE>\n";
/// The `traceIdRef` of the only trace in a log.
pub const TRACE_ID: &str = "1";

/// All that comes before the first event.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Unique ids of the machine, the process and the profiler.
    pub ids: [&'a str; 3],
    /// The machine's name and address, if they are known.
    pub host: Option<(&'a str, &'a str)>,
    pub program: &'a str,
    pub pid: u32,
    pub profiler: &'a str,
    pub version: &'a str,
    /// Options of the profiler.
    pub parameters: &'a str,
    /// Time of its start.
    pub at: Duration,
}

impl Head<'_> {
    pub fn elements(&self) -> String {
        let [node, process, agent] = self.ids;
        let mut element = Element::new("node").text("nodeId", node);
        if let Some((name, address)) = self.host {
            element = element.text("hostname", name).text("ipaddress", address);
        }
        let mut text = element.number("timezone", 0).time(self.at).end();
        text += &Element::new("processCreate")
            .text("processId", process)
            .text("name", self.program)
            .number("pid", self.pid)
            .text("nodeIdRef", node)
            .time(self.at)
            .end();
        text += &Element::new("agentCreate")
            .text("agentId", agent)
            .text("version", self.version)
            .text("processIdRef", process)
            .text("agentName", self.profiler)
            .text("agentType", "Profiler")
            .time(self.at)
            .text("agentParameters", self.parameters)
            .end();
        text + &Element::new("traceStart").text("traceId", TRACE_ID).text("agentIdRef", agent).time(self.at).end()
    }
}

/// The program has ended.
pub fn trace_end(at: Duration) -> String {
    Element::new("traceEnd").text("traceIdRef", TRACE_ID).time(at).end()
}
