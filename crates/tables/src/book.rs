//! All tables of a conversion: rows are encoded and compressed on separate threads.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use et_system::threads::{NoThread, spawn};

use crate::sheet::{Part, Sheet};
use et_columns::{GROUP, Rows, Values};

/// A group of rows to encode.
struct Job {
    sheet: Arc<Sheet>,
    number: u64,
    values: Vec<Values>,
}

/// The tables that are being written.
#[derive(Debug)]
pub struct Book {
    folder: PathBuf,
    sheets: Vec<Arc<Sheet>>,
    jobs: SyncSender<Job>,
    threads: Vec<JoinHandle<()>>,
}

impl Book {
    /// Writes to subfolders of `folder`, one for each table.
    ///
    /// # Errors
    ///
    /// Fails if no thread can be started.
    pub fn new(folder: &Path) -> Result<Self, NoThread> {
        let count = std::thread::available_parallelism().map_or(2, usize::from);
        // A bounded queue: the producer blocks when the threads do not keep up.
        let (jobs, receive) = sync_channel(count);
        let receive = Arc::new(Mutex::new(receive));
        let start = || {
            let receive = Arc::clone(&receive);
            spawn(move || work(&receive))
        };
        // At least one is required; the others are optional.
        let mut threads = vec![start()?];
        threads.extend((1..count).map_while(|_| start().ok()));
        Ok(Self { folder: folder.to_owned(), sheets: Vec::new(), jobs, threads })
    }

    /// Starts a table.
    pub fn table<R: Rows>(&mut self) -> io::Result<TableWriter<R>> {
        let sheet = Arc::new(Sheet::new(R::TABLE, self.folder.join(R::TABLE.name))?);
        self.sheets.push(Arc::clone(&sheet));
        Ok(TableWriter { rows: R::default(), sheet, jobs: self.jobs.clone(), groups: 0 })
    }

    /// Waits until all tables are written, and returns the files of each.
    pub fn finish(self) -> io::Result<Vec<(&'static str, Vec<Part>)>> {
        drop(self.jobs);
        for thread in self.threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        self.sheets.iter().map(|sheet| Ok((sheet.table().name, sheet.finish()?))).collect()
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { sheet, number, values }) = job else { return };
        sheet.add(number, values);
    }
}

/// Writes a table row by row.
#[derive(Debug)]
pub struct TableWriter<R: Rows> {
    rows: R,
    sheet: Arc<Sheet>,
    jobs: SyncSender<Job>,
    groups: u64,
}

impl<R: Rows> TableWriter<R> {
    #[inline]
    pub fn push(&mut self, row: R::Row) {
        self.rows.push(row);
        if self.rows.len() >= GROUP {
            self.hand_over();
        }
    }

    /// Ends the row group: the next row is in another one.
    pub fn end_group(&mut self) {
        if !self.rows.is_empty() {
            self.hand_over();
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        let next = self.sheet.take_written().map_or_else(R::default, R::reuse);
        let values = std::mem::replace(&mut self.rows, next).values();
        let job = Job { sheet: Arc::clone(&self.sheet), number: self.groups, values };
        self.groups += 1;
        // The threads are gone only if one has panicked, which `finish` reports.
        let _ = self.jobs.send(job);
    }

    /// Whether writing has failed.
    pub fn has_failed(&self) -> bool {
        self.sheet.has_failed()
    }

    pub fn finish(mut self) {
        self.end_group();
    }
}
