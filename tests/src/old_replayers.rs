//! Replayers of old, as far as what they read is described: they take one line after the other, call `malloc` at births and `free` at deaths,
//! and keep no more than what is alive. Written from the description of their input alone, and stricter than they need be: an object that is
//! used before its birth or after its death is an error.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};

/// Result of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    pub births: u64,
    pub deaths: u64,
    /// The most bytes that were alive at a time.
    pub peak: u64,
    /// Bytes of live objects at the end.
    pub left: u64,
}

#[derive(Debug, Default)]
struct Memory {
    sizes: HashMap<i32, u64>,
    replayed: Replayed,
}

impl Memory {
    fn malloc(&mut self, object: i32, size: u64) -> Result<()> {
        ensure!(object > 0, "{object} is no object");
        ensure!(self.sizes.insert(object, size).is_none(), "{object} is allocated twice");
        self.replayed.births += 1;
        self.replayed.left += size;
        self.replayed.peak = self.replayed.peak.max(self.replayed.left);
        Ok(())
    }

    fn free(&mut self, object: i32) -> Result<u64> {
        let size = self.sizes.remove(&object).with_context(|| format!("{object} is freed and not there"))?;
        self.replayed.deaths += 1;
        self.replayed.left -= size;
        Ok(size)
    }

    /// An object that is used, or 0.
    fn uses(&self, object: i32) -> Result<()> {
        ensure!(object == 0 || self.sizes.contains_key(&object), "{object} is used and not there");
        Ok(())
    }
}

/// TraceReplayer's input: what it calls an integer has 32 bits, and a long has 64.
struct Fields<'a> {
    words: std::str::SplitWhitespace<'a>,
}

impl Fields<'_> {
    fn long(&mut self) -> Result<i64> {
        let word = self.words.next().context("a field is missing")?;
        word.parse().with_context(|| format!("{word} is no number"))
    }

    fn integer(&mut self) -> Result<i32> {
        let number = self.long()?;
        i32::try_from(number).with_context(|| format!("{number} does not fit into an integer"))
    }
}

/// TraceReplayer: a line for each event, letter first.
#[derive(Debug, Default)]
struct TraceReplayer {
    memory: Memory,
    /// Methods that each thread is in.
    stacks: HashMap<i64, Vec<i32>>,
    time: i64,
}

impl TraceReplayer {
    fn line(&mut self, line: &str) -> Result<()> {
        let mut fields = Fields { words: line.split_whitespace() };
        match fields.words.next() {
            Some("N" | "A") => {
                let (object, size) = (fields.integer()?, fields.long()?);
                let (_type, _site, _length) = (fields.integer()?, fields.integer()?, fields.integer()?);
                fields.long()?;
                self.memory.malloc(object, size.try_into().context("a size is negative")?)?;
            }
            Some("D") => {
                let (object, _thread, time) = (fields.integer()?, fields.long()?, fields.long()?);
                ensure!(time >= self.time, "time runs backwards");
                self.time = time;
                self.memory.free(object)?;
            }
            Some("U") => {
                let (origin, target, _field, _thread) =
                    (fields.integer()?, fields.integer()?, fields.integer()?, fields.long()?);
                self.memory.uses(origin)?;
                self.memory.uses(target)?;
            }
            Some("M") => {
                let (method, receiver, thread) = (fields.integer()?, fields.integer()?, fields.long()?);
                self.memory.uses(receiver)?;
                self.stacks.entry(thread).or_default().push(method);
            }
            Some("E") => {
                let (method, thread) = (fields.integer()?, fields.long()?);
                self.leave(method, thread)?;
            }
            Some(letter @ ("T" | "H" | "X")) => {
                let (method, receiver, exception, thread) =
                    (fields.integer()?, fields.integer()?, fields.integer()?, fields.long()?);
                self.memory.uses(receiver)?;
                self.memory.uses(exception)?;
                if letter == "X" {
                    self.leave(method, thread)?;
                }
            }
            // In texts of the successor.
            Some("W") => {
                let (object, _type, _thread) = (fields.integer()?, fields.integer()?, fields.long()?);
                ensure!(object != 0, "a witness of nothing");
                self.memory.uses(object)?;
            }
            _ => bail!("not an event"),
        }
        ensure!(fields.words.next().is_none(), "a field too many");
        Ok(())
    }

    fn leave(&mut self, method: i32, thread: i64) -> Result<()> {
        let top = self.stacks.get_mut(&thread).and_then(Vec::pop);
        ensure!(top == Some(method), "method {method} returns, and thread {thread} is in {top:?}");
        Ok(())
    }
}

/// Plays a text of dialect `replayer`.
pub fn trace_replayer(text: &str) -> Result<Replayed> {
    let mut replayer = TraceReplayer::default();
    for (number, line) in (1..).zip(text.lines()) {
        if !line.starts_with('#') && !line.is_empty() {
            replayer.line(line).with_context(|| format!("line {number}: {line}"))?;
        }
    }
    Ok(replayer.memory.replayed)
}

/// Plays a text of dialect `oracle`: a row of CSV for each allocation and each free.
pub fn oracle(text: &str) -> Result<Replayed> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let head = lines.next();
    ensure!(head == Some("timestamp,event_type,object_id,size,site_id,thread_id,type_id"), "{head:?} is no head");
    let (mut memory, mut last) = (Memory::default(), -1);
    for line in lines {
        let row = || format!("row {line}");
        let cells: Vec<&str> = line.split(',').collect();
        let [time, event, object, size, site, thread, ty] = cells[..] else { bail!("{line} is no row") };
        let number = |cell: &str| cell.parse::<i64>().with_context(row);
        let (time, object, size) = (number(time)?, object.parse().with_context(row)?, size.parse().with_context(row)?);
        [site, thread, ty].into_iter().try_for_each(|cell| number(cell).map(drop))?;
        ensure!(time > last, "{line}: not after {last}");
        last = time;
        match event {
            "alloc" => memory.malloc(object, size).with_context(row)?,
            "free" => {
                let born = memory.free(object).with_context(row)?;
                ensure!(born == size, "{line}: born with {born} bytes");
            }
            _ => bail!("{line}: neither alloc nor free"),
        }
    }
    Ok(memory.replayed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the description, and births for what it uses without.
    const EXAMPLE: &str = "\
# Sample trace file
N 752848266 16 5 0 0 1950409828
N 1177096266 32 5 0 0 1950409828
N 670576685 24 5 0 0 1950409828
N 1299641336 16 5 0 0 1950409828
M 40 752848266 1950409828
N 815033865 40 6 58 0 1950409828
E 40 1950409828

M 41 752848266 1950409828
A 1936628443 24 18 68 1 1950409828
E 41 1950409828

U 1177096266 670576685 9 1950409828
U 670576685 1299641336 9 1950409828
U 0 1177096266 42 1950409828

D 815033865 1950409828 745397774474461
D 1936628443 1950409828 745397774474462
";

    #[test]
    fn the_example_of_the_description_is_replayed() {
        let expected = Replayed { births: 6, deaths: 2, peak: 152, left: 88 };
        assert_eq!(trace_replayer(EXAMPLE).unwrap(), expected);
    }

    #[test]
    fn what_does_not_fit_the_description_is_refused() {
        for (more, why) in [
            ("N 752848266 16 5 0 0 1", "allocated twice"),
            ("N 0 16 5 0 0 1", "no object"),
            ("N 5000000000 16 5 0 0 1", "does not fit"),
            ("N 7 16 LA; 0 0 1", "no number"),
            ("N 7 16 5 0 1", "a field is missing"),
            ("N 7 16 5 0 0 1 1", "a field too many"),
            ("D 815033865 1 745397774474463", "not there"),
            ("D 752848266 1 745397774474461", "backwards"),
            ("U 815033865 0 1 1", "not there"),
            ("M 1 815033865 1", "not there"),
            ("E 40 1950409828", "is in None"),
            ("V 7 16 5 0 0 1", "not an event"),
        ] {
            let error = trace_replayer(&format!("{EXAMPLE}{more}\n")).unwrap_err();
            assert!(format!("{error:#}").contains(why), "{more}: {error:#}");
        }
    }

    #[test]
    fn rows_are_allocations_and_frees() {
        const HEAD: &str = "timestamp,event_type,object_id,size,site_id,thread_id,type_id\n";
        let text = format!("{HEAD}0,alloc,5,24,3,1,9\n4,alloc,6,16,3,1,8\n5,free,5,24,3,2,9\n# total N 2\n");
        assert_eq!(oracle(&text).unwrap(), Replayed { births: 2, deaths: 1, peak: 40, left: 16 });
        for wrong in ["5,free,6,16,3,1,8", "6,free,6,24,3,1,8", "6,free,7,16,3,1,8", "6,lend,6,16,3,1,8", "6,free,6"] {
            assert!(oracle(&format!("{text}{wrong}\n")).is_err(), "{wrong}");
        }
        assert!(oracle("").is_err());
    }
}
