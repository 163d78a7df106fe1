//! Operations from a text in dialect oracle: what was allocated and freed, and when. It has no references, no arrays,
//! and threads only as allocators.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use et_reader::record::LARGEST;
use rustc_hash::{FxHashMap, FxHashSet};

use super::PrepareError;
use crate::ops::{Amount, Class, ClassKind, Op, OpsWriter, Peak, Site, Tables};

/// Columns of a row.
pub const COLUMNS: &str = "timestamp,event_type,object_id,size,site_id,thread_id,type_id";
/// Maximum length of a row in bytes.
const LONGEST: u64 = 1 << 12;

#[derive(Debug, Default)]
struct Reader {
    classes: FxHashMap<u64, u32>,
    sites: FxHashSet<u32>,
    threads: FxHashMap<u32, u32>,
    thread: Option<u32>,
    alive: FxHashMap<u64, (u32, u64)>,
    free: Vec<u32>,
    now: Amount,
    tables: Tables,
}

struct Row {
    is_birth: bool,
    object: u64,
    size: u64,
    site: u32,
    thread: u32,
    ty: u64,
}

pub fn read(path: &Path, text: File, mut out: OpsWriter) -> Result<(OpsWriter, Tables), PrepareError> {
    let mut reader = Reader::default();
    let mut lines = BufReader::with_capacity(1 << 18, text);
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        let fail = |source| PrepareError::Io { path: path.to_owned(), source };
        let read = (&mut lines).take(LONGEST).read_line(&mut line).map_err(fail)?;
        if read == 0 {
            break;
        }
        let text = line.trim();
        if number == 1 || text.is_empty() || text.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| PrepareError::Oracle { path: path.to_owned(), line: number, what: what.to_owned() };
        let row = row(text).ok_or_else(|| wrong("not a row"))?;
        reader.row(&row, &mut out).map_err(PrepareError::Ops)?.map_err(wrong)?;
    }
    Ok((out, reader.finish(path)))
}

fn row(text: &str) -> Option<Row> {
    let mut cells = text.split(',');
    let _timestamp: u64 = cells.next()?.parse().ok()?;
    let is_birth = match cells.next()? {
        "alloc" => true,
        "free" => false,
        _ => return None,
    };
    let mut number = || cells.next()?.trim().parse::<u64>().ok();
    let (object, size, site, thread, ty) = (number()?, number()?, number()?, number()?, number()?);
    Some(Row { is_birth, object, size, site: u32::try_from(site).ok()?, thread: u32::try_from(thread).ok()?, ty })
}

impl Reader {
    /// Writes the operations of a row. The inner error describes an invalid row, the outer one a failed write.
    fn row(&mut self, row: &Row, out: &mut OpsWriter) -> Result<Result<(), &'static str>, crate::ops::OpsError> {
        if self.thread != Some(row.thread) {
            self.thread = Some(row.thread);
            let threads = &mut self.tables.threads;
            let thread = *self.threads.entry(row.thread).or_insert_with(|| {
                threads.push(row.thread);
                threads.len() as u32 - 1
            });
            self.tables.totals.thread_switches += 1;
            out.push(Op::Thread { thread })?;
        }
        let totals = &mut self.tables.totals;
        if !row.is_birth {
            let Some((handle, size)) = self.alive.remove(&row.object) else {
                return Ok(Err("an object is freed that was not allocated"));
            };
            self.free.push(handle);
            self.now.sub(size);
            totals.deaths += 1;
            out.push(Op::Death { handle })?;
            return Ok(Ok(()));
        }
        if row.size > LARGEST {
            return Ok(Err("an object is larger than any JVM allocates"));
        }
        let size = row.size.next_multiple_of(8).max(8);
        let handle = self.free.pop().unwrap_or_else(|| {
            self.tables.handles += 1;
            self.tables.handles
        });
        if self.alive.insert(row.object, (handle, size)).is_some() {
            return Ok(Err("an object is allocated that was not freed"));
        }
        let classes = &mut self.tables.classes;
        let class = *self.classes.entry(row.ty).or_insert_with(|| {
            classes.push(Class { descriptor: format!("Ltype{};", row.ty), kind: ClassKind::Scalar, slots: 0 });
            classes.len() as u32 - 1
        });
        if row.site != 0 {
            self.sites.insert(row.site);
        }
        let birth = Op::Birth { handle, class, size, slots: 0, site: row.site, initial: false };
        out.birth(&birth, &classes[class as usize])?;
        totals.births += 1;
        totals.sizes_unknown += u64::from(row.size == 0);
        totals.allocated.add(size);
        self.now.add(size);
        if self.now.bytes > totals.peak.bytes {
            let operation = out.operations() - 1;
            totals.peak = Peak { bytes: self.now.bytes, objects: self.now.objects, operation };
        }
        Ok(Ok(()))
    }

    fn finish(mut self, path: &Path) -> Tables {
        let mut sites: Vec<Site> =
            self.sites.iter().map(|&site| Site { site, name: format!("site {site:x}") }).collect();
        sites.sort_unstable_by_key(|site| site.site);
        self.tables.sites = sites;
        let totals = &mut self.tables.totals;
        totals.at_end = self.now;
        totals.operations = totals.births + totals.deaths + totals.thread_switches;
        totals.records = totals.births + totals.deaths;
        self.tables.tool = format!("et-replay {}", env!("CARGO_PKG_VERSION"));
        self.tables.trace = path.display().to_string();
        self.tables.notes = vec![
            "dialect oracle has allocations and frees only: no references, no uses, no threads that do anything else"
                .to_owned(),
        ];
        self.tables
    }
}
