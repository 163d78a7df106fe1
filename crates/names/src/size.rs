//! Parsing of sizes, the same in all tools.

/// Error message for text that is not a size.
pub const WRONG_SIZE: &str =
    "a size is a number of bytes, optionally followed by k, M, G or T (powers of 1024): 64M, 64MB, 1.5g";

/// Parses a number of bytes: `4096`, or with a unit in the style of JVM options, of people or of programs: `64m`,
/// `1.5g`, `64MB`, `64 MiB`.
pub fn size(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let unit = unit.strip_prefix(' ').unwrap_or(unit);
    let shift = match unit {
        "" | "b" => 0,
        "k" | "kb" | "ki" | "kib" => 10,
        "m" | "mb" | "mi" | "mib" => 20,
        "g" | "gb" | "gi" | "gib" => 30,
        "t" | "tb" | "ti" | "tib" => 40,
        _ => return None,
    };
    // Whole numbers are converted exactly.
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(1 << shift);
    }
    let bytes = number.parse::<f64>().ok()? * (1_u64 << shift) as f64;
    (bytes < u64::MAX as f64).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_however_they_are_written() {
        let all = ["64MB", "64mb", "64M", "64m", "64MiB", "64 MiB", "64Mi", "64 m", "65536k", "67108864", "67108864B"];
        assert_eq!(all.map(size), [Some(64 << 20); 11]);
        assert_eq!(
            ["1.5g", "0.5k", ".5k", "2TB", "0"].map(size),
            [Some(3 << 29), Some(512), Some(512), Some(2 << 40), Some(0)]
        );
        assert_eq!(size("18446744073709551615"), Some(u64::MAX));
    }

    #[test]
    fn what_is_no_size_is_none() {
        let all = [
            "",
            "M",
            "MB",
            ".",
            "1..5k",
            "+64m",
            "-1M",
            "1e3k",
            "64mii",
            "64mbB",
            "64  m",
            "64m ",
            " 64m",
            "2x",
            "infm",
            "nan",
            "ä",
            "4GB'; drop",
        ];
        assert_eq!(all.map(size), [None; 18]);
        assert_eq!(
            ["18446744073709551616", "99999999999G", "99999999999.5G"].map(size),
            [None; 3],
            "more than there can be"
        );
    }
}
