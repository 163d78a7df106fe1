//! The predefined queries, from `queries/*.sql`.

/// Name and text of each query.
pub const ALL: [(&str, &str); 25] = [
    ("top_sites", include_str!("../../../queries/top_sites.sql")),
    ("drag_sites", include_str!("../../../queries/drag_sites.sql")),
    ("leaks", include_str!("../../../queries/leaks.sql")),
    ("live_bytes", include_str!("../../../queries/live_bytes.sql")),
    ("classes", include_str!("../../../queries/classes.sql")),
    ("survival", include_str!("../../../queries/survival.sql")),
    ("growth", include_str!("../../../queries/growth.sql")),
    ("die_together", include_str!("../../../queries/die_together.sql")),
    ("allocating_paths", include_str!("../../../queries/allocating_paths.sql")),
    ("hot_methods", include_str!("../../../queries/hot_methods.sql")),
    ("wasted_capacity", include_str!("../../../queries/wasted_capacity.sql")),
    ("exceptions", include_str!("../../../queries/exceptions.sql")),
    ("handed_over", include_str!("../../../queries/handed_over.sql")),
    ("allocation_rate", include_str!("../../../queries/allocation_rate.sql")),
    ("mutated_fields", include_str!("../../../queries/mutated_fields.sql")),
    ("write_once", include_str!("../../../queries/write_once.sql")),
    ("fan_in", include_str!("../../../queries/fan_in.sql")),
    ("who_keeps", include_str!("../../../queries/who_keeps.sql")),
    ("tenured_garbage", include_str!("../../../queries/tenured_garbage.sql")),
    ("captured", include_str!("../../../queries/captured.sql")),
    ("heap_at", include_str!("../../../queries/heap_at.sql")),
    ("held_by", include_str!("../../../queries/held_by.sql")),
    ("field_history", include_str!("../../../queries/field_history.sql")),
    ("who_wrote", include_str!("../../../queries/who_wrote.sql")),
    ("reference_lifetimes", include_str!("../../../queries/reference_lifetimes.sql")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_folder_are_here() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../queries");
        let mut there: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let mut known: Vec<String> = ALL.iter().map(|(name, _)| format!("{name}.sql")).collect();
        there.sort();
        known.sort();
        assert_eq!(there, known);
    }

    #[test]
    fn each_says_what_it_answers() {
        for (name, text) in ALL {
            let first = text.lines().next().unwrap();
            assert!(first.starts_with("-- ") && first.contains("?"), "{name}: {first}");
        }
    }
}
