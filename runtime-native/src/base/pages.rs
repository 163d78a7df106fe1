//! Memory whose pages will all be used at once.
#![allow(unsafe_code, reason = "advice to the system about memory")]

/// Populates all pages of a table in one call, which is much cheaper than page faults. False if the system does not
/// support it (Linux before 5.14): pages are then populated on first use.
pub fn populate<T>(table: &[T]) -> bool {
    let page = page_size();
    let start = table.as_ptr() as usize & !(page - 1);
    let end = (table.as_ptr_range().end as usize).next_multiple_of(page);
    // SAFETY: the pages are our own memory, and their content does not change.
    unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_POPULATE_WRITE) == 0 }
}

fn page_size() -> usize {
    // SAFETY: a query without side effects.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of the table's pages in memory, and number of all its pages.
    fn resident(table: &[u8]) -> (usize, usize) {
        let page = page_size();
        let start = (table.as_ptr() as usize).next_multiple_of(page);
        let pages = (table.as_ptr_range().end as usize - start) / page;
        let mut found = vec![0; pages];
        // SAFETY: whole pages of the table, and one byte for each.
        assert_eq!(unsafe { libc::mincore(start as *mut libc::c_void, pages * page, found.as_mut_ptr()) }, 0);
        (found.iter().filter(|found| **found & 1 != 0).count(), pages)
    }

    #[test]
    fn all_pages_are_there_and_keep_what_they_hold() {
        let mut table = vec![0_u8; 4 << 20];
        table[5] = 7;
        let (before, pages) = resident(&table);
        assert!(before < pages, "{before} of {pages}");
        if populate(&table) {
            assert_eq!(resident(&table), (pages, pages));
        }
        assert_eq!((table[5], table[4 << 19]), (7, 0));
    }
}
