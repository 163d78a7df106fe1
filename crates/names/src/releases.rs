//! Feature releases of Java, and what this project has to know of them: which are tested, which class files are rewritten, what differs from one to the
//! next. A new JDK starts here; docs/contributing.md, "How to support a new JDK", has the rest of the way.

/// Releases that all tests run on, oldest first.
pub const TESTED: [u16; 4] = [11, 17, 21, 25];

/// The newest release whose class files are rewritten. Those newer than the newest tested one are rewritten by the rules of that one, with a
/// warning; what they have that is not known leaves a class as it is, and is counted.
pub const NEWEST_REWRITTEN: u16 = 27;

/// From which release on something is different.
pub mod since {
    /// A walk of the heap comes to all objects of a class data archive: the VM holds them by a root.
    pub const ARCHIVED_OBJECTS_ARE_ROOTS: u16 = 21;
    /// The VM's function for `Thread.sleep` takes nanoseconds; milliseconds before.
    pub const SLEEP_TAKES_NANOSECONDS: u16 = 21;
    /// Serial and Parallel dump archives with heap objects, too, and messages about archives have the tag `aot` rather than `cds`.
    pub const ARCHIVES_ARE_AOT: u16 = 25;
}

/// The major version of the class files of a feature release (JVMS table 4.1-A).
pub const fn class_file_version(feature: u16) -> u16 {
    feature + 44
}

/// The feature release of a major version of class files; `None` before 45, which is of JDK 1.0.2 and 1.1.
pub const fn of_class_file(major: u16) -> Option<u16> {
    if major < 45 { None } else { Some(major - 44) }
}

/// The feature release of a class file, given its bytes; `None` if they end before the version.
pub fn of_class(class: &[u8]) -> Option<u16> {
    of_class_file(u16::from_be_bytes(class.get(6..8)?.try_into().ok()?))
}

/// The newest tested release.
pub const fn newest_tested() -> u16 {
    TESTED[TESTED.len() - 1]
}

/// Whether all tests run on a release.
pub fn is_tested(feature: u16) -> bool {
    TESTED.contains(&feature)
}

/// What to know before a release that is newer than all tested ones is trusted; `None`: it is not.
pub fn caution(feature: u16) -> Option<String> {
    (feature > newest_tested()).then(|| {
        let tested = TESTED.map(|release| release.to_string()).join(", ");
        format!("JDK {feature} is newer than those this version is tested with ({tested}): check traces with et-trace validate")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_files_tell_their_release() {
        assert_eq!(class_file_version(25), 69);
        assert_eq!((of_class_file(69), of_class_file(45), of_class_file(44)), (Some(25), Some(1), None));
    }

    #[test]
    fn releases_are_in_order_and_the_newest_is_rewritten() {
        assert!(TESTED.is_sorted() && newest_tested() <= NEWEST_REWRITTEN);
        assert!(TESTED.into_iter().all(|feature| is_tested(feature) && caution(feature).is_none()));
        assert!(!is_tested(22) && caution(22).is_none(), "between tested ones there is nothing to warn of");
        assert!(caution(26).is_some_and(|line| line.contains("JDK 26") && line.contains("17, 21, 25")));
    }
}
