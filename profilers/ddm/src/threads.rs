//! States of threads (`THST`), in both existing layouts.
//!
//! The specification of 2007 has a count of four bytes, then six bytes per thread. Android's monitor expects a header
//! of four bytes (its own length, length of an entry, count in two bytes) and eighteen bytes per thread. The first byte
//! distinguishes them: 0 for fewer than 16 million threads, or 4, the length of the header.

use crate::wire::{Malformed, Reader, Writer};

const WHAT: &str = "a THST chunk";

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadState {
    /// It has ended; known to Android's monitor only.
    Zombie,
    /// Running or ready to run.
    Running,
    /// In `Thread.sleep()`, or waiting with a timeout.
    Sleeping,
    /// Blocked on a monitor.
    Monitor,
    /// In `Object.wait()`.
    Waiting,
    /// Being created.
    Initializing,
    /// About to start.
    Starting,
    /// In native code.
    Native,
    /// Waiting in the VM.
    VmWait,
}

impl ThreadState {
    /// All of them, by their numbers.
    pub const ALL: [Self; 9] = [
        Self::Zombie,
        Self::Running,
        Self::Sleeping,
        Self::Monitor,
        Self::Waiting,
        Self::Initializing,
        Self::Starting,
        Self::Native,
        Self::VmWait,
    ];

    /// As the specification calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zombie => "zombie",
            Self::Running => "running",
            Self::Sleeping => "sleeping",
            Self::Monitor => "monitor",
            Self::Waiting => "waiting",
            Self::Initializing => "initializing",
            Self::Starting => "starting",
            Self::Native => "native",
            Self::VmWait => "vmwait",
        }
    }

    /// The encoded value.
    pub fn number(self) -> u8 {
        self as u8
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.one_of(&Self::ALL)
    }
}

/// State of one thread in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStatus {
    /// Thread id.
    pub id: u32,
    pub state: ThreadState,
    /// It was stopped; only in the layout of 2007.
    pub is_suspended: bool,
    /// Fields that only Android's layout has.
    pub android: Option<AndroidStatus>,
}

/// The additional fields of Android's layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AndroidStatus {
    /// The operating system's number for it.
    pub tid: u32,
    /// Time in its own code, in clock ticks of a hundredth of a second.
    pub utime: u32,
    /// Time in the kernel, in the same.
    pub stime: u32,
    /// The VM does not wait for it to end.
    pub is_daemon: bool,
}

/// Layout of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The layout of the specification.
    #[default]
    Of2007,
    /// The layout of Android's monitor.
    Android,
}

impl Layout {
    const ANDROID_HEADER: u8 = 4;
    const ANDROID_ENTRY: u8 = 18;
}

/// The states of threads at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStatuses {
    /// The layout to encode.
    pub layout: Layout,
    /// Threads in any order.
    pub threads: Vec<ThreadStatus>,
}

impl ThreadStatuses {
    pub(crate) fn read(data: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(WHAT, data);
        match data.first() {
            None | Some(0) => {
                let count = reader.count(6)?;
                let mut threads = Vec::with_capacity(count);
                for _ in 0..count {
                    let (id, state, is_suspended) = (reader.u4()?, ThreadState::read(&mut reader)?, reader.flag()?);
                    threads.push(ThreadStatus { id, state, is_suspended, android: None });
                }
                reader.end()?;
                Ok(Self { layout: Layout::Of2007, threads })
            }
            Some(_) => Self::read_android(reader),
        }
    }

    fn read_android(mut reader: Reader<'_>) -> Result<Self, Malformed> {
        let header = reader.u1()?;
        if header < Layout::ANDROID_HEADER {
            return reader.wrong(header);
        }
        let entry = reader.u1()?;
        if entry < Layout::ANDROID_ENTRY {
            return reader.wrong(entry);
        }
        let count = reader.u2()?;
        reader.take(usize::from(header - Layout::ANDROID_HEADER))?;
        let count = reader.fits(u64::from(count), usize::from(entry))?;
        let mut threads = Vec::with_capacity(count);
        for _ in 0..count {
            let (id, state) = (reader.u4()?, ThreadState::read(&mut reader)?);
            let android = AndroidStatus {
                tid: reader.u4()?,
                utime: reader.u4()?,
                stime: reader.u4()?,
                is_daemon: reader.flag()?,
            };
            // Later versions may say more.
            reader.take(usize::from(entry - Layout::ANDROID_ENTRY))?;
            threads.push(ThreadStatus { id, state, is_suspended: false, android: Some(android) });
        }
        reader.end()?;
        Ok(Self { layout: Layout::Android, threads })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        match self.layout {
            Layout::Of2007 => {
                out.count(self.threads.len());
                for thread in &self.threads {
                    out.u4(thread.id).u1(thread.state.number()).u1(thread.is_suspended.into());
                }
            }
            Layout::Android => {
                // No more can be said in one chunk.
                let threads = &self.threads[..self.threads.len().min(usize::from(u16::MAX))];
                out.u1(Layout::ANDROID_HEADER).u1(Layout::ANDROID_ENTRY).u2(threads.len() as u16);
                for thread in threads {
                    let android = thread.android.unwrap_or_default();
                    out.u4(thread.id).u1(thread.state.number());
                    out.u4(android.tid).u4(android.utime).u4(android.stime).u1(android.is_daemon.into());
                }
            }
        }
        out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_layout_is_recognized() {
        let of_2007 = ThreadStatuses {
            layout: Layout::Of2007,
            threads: vec![ThreadStatus { id: 3, state: ThreadState::Monitor, is_suspended: true, android: None }],
        };
        assert_eq!(of_2007.write(), [0, 0, 0, 1, 0, 0, 0, 3, 3, 1]);
        assert_eq!(ThreadStatuses::read(&of_2007.write()).as_ref(), Ok(&of_2007));
        let android = AndroidStatus { tid: 4711, utime: 5, stime: 6, is_daemon: true };
        let of_android = ThreadStatuses {
            layout: Layout::Android,
            threads: vec![ThreadStatus {
                id: 3,
                state: ThreadState::VmWait,
                is_suspended: false,
                android: Some(android),
            }],
        };
        assert_eq!(of_android.write(), [4, 18, 0, 1, 0, 0, 0, 3, 8, 0, 0, 18, 103, 0, 0, 0, 5, 0, 0, 0, 6, 1]);
        assert_eq!(ThreadStatuses::read(&of_android.write()).as_ref(), Ok(&of_android));
        assert_eq!(ThreadStatuses::read(&[]).unwrap_err().to_string(), "a THST chunk ends after 0 of 4 bytes");
    }
}
