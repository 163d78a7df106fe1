//! Checks that the records of two threads that hand objects to each other (`tests/java/facts/Handovers.java`) are in
//! the order in which things happened.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::BufRead;

use anyhow::{Context, Result, bail, ensure};

/// The last event of a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Made,
    /// Its constructors run: its own and that of `Parcel`.
    Constructed(u8),
    Sent,
    Received,
    Answered,
    Read,
}

#[derive(Debug)]
struct Parcel {
    way: String,
    step: Step,
    sender: String,
    answer: Option<String>,
}

/// Checks records one by one.
#[derive(Debug, Default)]
pub struct Handovers {
    parcels: HashMap<String, Parcel>,
    /// Answers that were not read yet, with their parcels.
    answers: HashMap<String, (String, u8)>,
    /// Parcels of each way that are under way, in the order in which they were sent.
    under_way: BTreeMap<String, VecDeque<String>>,
    /// Number of completed handovers.
    pub done: BTreeMap<String, u64>,
}

impl Handovers {
    /// Reads the text of a trace, without deaths.
    pub fn read(text: impl BufRead) -> Result<Self> {
        let mut handovers = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line?;
            let words: Vec<&str> = line.split(' ').collect();
            handovers.add(&words).with_context(|| format!("line {}: {line}", number + 1))?;
        }
        ensure!(handovers.parcels.is_empty(), "{} parcels did not come to their end", handovers.parcels.len());
        Ok(handovers)
    }

    fn add(&mut self, words: &[&str]) -> Result<()> {
        match *words {
            [kind @ ("N" | "A" | "I" | "V" | "P"), object, _, descriptor, _, _, thread] => {
                let Some(name) = descriptor.strip_prefix("LHandovers$") else { return Ok(()) };
                let name = name.trim_end_matches(';');
                if name == "Answer" {
                    ensure!(kind == "N", "an answer of kind {kind}");
                    self.answers.insert(object.to_owned(), (String::new(), 0));
                } else if name.starts_with("By") || name.starts_with("Queued") {
                    ensure!(kind == "N", "a parcel of kind {kind}");
                    let (way, sender) = (name.to_owned(), thread.to_owned());
                    let parcel = Parcel { way, step: Step::Made, sender, answer: None };
                    self.parcels.insert(object.to_owned(), parcel);
                }
                Ok(())
            }
            ["M", _, receiver, thread] => self.entered(receiver, thread),
            ["U", _, origin, target, _, thread] => self.stored(origin, target, thread),
            _ => Ok(()),
        }
    }

    fn entered(&mut self, receiver: &str, thread: &str) -> Result<()> {
        if let Some((parcel, entered)) = self.answers.get_mut(receiver) {
            *entered += 1;
            // The first is its constructor.
            if *entered == 2 {
                let parcel = std::mem::take(parcel);
                self.answers.remove(receiver);
                return self.read_answer(&parcel, thread);
            }
            return Ok(());
        }
        let Some(parcel) = self.parcels.get_mut(receiver) else { return Ok(()) };
        let waiting = self.under_way.entry(parcel.way.clone()).or_default();
        parcel.step = match parcel.step {
            Step::Made => Step::Constructed(1),
            Step::Constructed(1) => Step::Constructed(2),
            Step::Constructed(_) => {
                ensure!(thread == parcel.sender, "sent by thread {thread}, made by {}", parcel.sender);
                ensure!(waiting.is_empty() || parcel.way.starts_with("Queued"), "sent while another is under way");
                waiting.push_back(receiver.to_owned());
                Step::Sent
            }
            Step::Sent => {
                ensure!(thread != parcel.sender, "received by the thread that sent it");
                ensure!(
                    waiting.front().is_some_and(|first| first == receiver),
                    "received before one that was sent earlier"
                );
                Step::Received
            }
            step => bail!("a call of a parcel that was {step:?}"),
        };
        Ok(())
    }

    fn stored(&mut self, origin: &str, target: &str, thread: &str) -> Result<()> {
        let Some(parcel) = self.parcels.get_mut(origin) else { return Ok(()) };
        ensure!(parcel.step == Step::Received && thread != parcel.sender, "answered when it was {:?}", parcel.step);
        parcel.step = Step::Answered;
        parcel.answer = Some(target.to_owned());
        let answer = self.answers.get_mut(target).context("the answer was not made before")?;
        ensure!(answer.1 == 1, "the answer's constructor was not entered");
        answer.0 = origin.to_owned();
        if parcel.way.starts_with("Queued") {
            // It is never read.
            self.answers.remove(target);
            self.finish(origin);
        }
        Ok(())
    }

    fn read_answer(&mut self, object: &str, thread: &str) -> Result<()> {
        let parcel = self.parcels.get_mut(object).context("an answer was read before it was in its parcel")?;
        ensure!(parcel.step == Step::Answered && thread == parcel.sender, "read when it was {:?}", parcel.step);
        parcel.step = Step::Read;
        self.finish(object);
        Ok(())
    }

    fn finish(&mut self, object: &str) {
        if let Some(parcel) = self.parcels.remove(object) {
            self.under_way.entry(parcel.way.clone()).or_default().pop_front();
            *self.done.entry(parcel.way).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [&str; 9] = [
        "N a 10 LHandovers$ByPark; 1 0 1",
        "M 1 a 1",
        "M 2 a 1",
        "M 3 a 1",
        "M 4 a 2",
        "N b 10 LHandovers$Answer; 1 0 2",
        "M 5 b 2",
        "U 0 a b 7 2",
        "M 6 b 1",
    ];

    fn read(lines: &[&str]) -> Result<BTreeMap<String, u64>> {
        Ok(Handovers::read(lines.join("\n").as_bytes())?.done)
    }

    #[test]
    fn a_parcel_goes_its_way() {
        assert_eq!(read(&GOOD).unwrap(), BTreeMap::from([("ByPark".to_owned(), 1)]));
    }

    #[test]
    fn records_that_change_places_or_are_missing_are_noticed() {
        for (one, other) in [(0, 1), (3, 4), (4, 7), (5, 7), (7, 8), (0, 8)] {
            let mut lines = GOOD;
            lines.swap(one, other);
            assert!(read(&lines).is_err(), "{lines:#?}");
        }
        for missing in GOOD {
            let lines: Vec<&str> = GOOD.into_iter().filter(|line| *line != missing).collect();
            assert!(read(&lines).is_err(), "without {missing}");
        }
    }

    #[test]
    fn queues_keep_their_order() {
        let parcel = |object: &str, answer: &str| {
            let lines = GOOD.map(|line| {
                line.replace("ByPark", "QueuedInLinks")
                    .replace(" a ", &format!(" {object} "))
                    .replace(" b ", &format!(" {answer} "))
            });
            (lines[..4].to_vec(), lines[4..8].to_vec())
        };
        let ((sent_one, received_one), (sent_two, received_two)) = (parcel("a", "b"), parcel("c", "d"));
        let text = |parts: [&Vec<String>; 4]| parts.map(|part| part.join("\n")).join("\n");
        let good = text([&sent_one, &sent_two, &received_one, &received_two]);
        assert_eq!(Handovers::read(good.as_bytes()).unwrap().done["QueuedInLinks"], 2);
        let bad = text([&sent_one, &sent_two, &received_two, &received_one]);
        assert!(Handovers::read(bad.as_bytes()).is_err());
    }
}
