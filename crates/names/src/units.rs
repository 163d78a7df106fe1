//! Formatting of sizes, counts and times, the same in all tools.

/// Formats a number of bytes in the most readable unit: `1023 B`, `1.5 KiB`, `5.2 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Formats a number with thousands separators.
pub fn number(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun, in the plural if necessary: `1 class`, `2 classes`, `1,234 events`.
pub fn counted(count: u64, what: &str) -> String {
    let plural = match what.as_bytes() {
        [.., b's' | b'h' | b'x'] => format!("{what}es"),
        [.., b'a' | b'e' | b'o' | b'u', b'y'] => format!("{what}s"),
        [start @ .., b'y'] => format!("{}ies", &what[..start.len()]),
        _ => format!("{what}s"),
    };
    counted_as(count, what, &plural)
}

/// `1 call or return`, `2 calls and returns`: a count of what has a plural of its own.
pub fn counted_as(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { many })
}

/// Formats a measured time in the most readable unit: `250 µs`, `12.5 ms`, `3.20 s`.
pub fn seconds(value: f64) -> String {
    if value < 0.001 {
        format!("{:.0} µs", value * 1e6)
    } else if value < 1.0 {
        format!("{:.1} ms", value * 1e3)
    } else {
        format!("{value:.2} s")
    }
}

/// Formats a waiting time: `42 s`, `3 min 20 s`, `1 h 5 min`.
pub fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Formats a percentage: `12.5 %`; empty if `whole` is 0.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { String::new() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_for_people() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }

    #[test]
    fn counts_have_their_plurals() {
        let two = ["class", "branch", "entry", "array", "event"].map(|what| counted(2, what));
        assert_eq!(two, ["2 classes", "2 branches", "2 entries", "2 arrays", "2 events"]);
        assert_eq!(counted(1, "entry"), "1 entry");
        assert_eq!(counted_as(1234, "call or return", "calls and returns"), "1,234 calls and returns");
    }
}
