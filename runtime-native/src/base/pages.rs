//! Memory of which all pages will be used at once.
#![allow(unsafe_code, reason = "advice to the system about memory")]

/// Has the system back all pages of a table at once, which takes a small part of what one page fault after the other does. False
/// where the system does not know how (Linux before 5.14): then they come one by one.
pub fn populate<T>(table: &[T]) -> bool {
    let page = page_size();
    let start = table.as_ptr() as usize & !(page - 1);
    let end = (table.as_ptr_range().end as usize).next_multiple_of(page);
    // SAFETY: pages that hold memory of ours; what is in them stays as it is.
    unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_POPULATE_WRITE) == 0 }
}

fn page_size() -> usize {
    // SAFETY: a plain question.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of a table's pages are in memory, and how many there are.
    fn resident(table: &[u8]) -> (usize, usize) {
        let page = page_size();
        let start = (table.as_ptr() as usize).next_multiple_of(page);
        let pages = (table.as_ptr_range().end as usize - start) / page;
        let mut found = vec![0; pages];
        // SAFETY: whole pages of the table, and a byte for each.
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
