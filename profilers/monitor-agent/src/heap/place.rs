//! Where the heap is: the parts of the addresses set aside for it that the VM has obtained from the system.

use std::ops::Range;

/// The readable mappings of `/proc/self/maps` within a range, adjacent ones as one.
pub fn committed(maps: &str, within: &Range<u64>) -> Vec<Range<u64>> {
    let mut parts: Vec<Range<u64>> = Vec::new();
    for line in maps.lines() {
        let Some((addresses, rest)) = line.split_once(' ') else { continue };
        let Some((start, end)) = addresses.split_once('-') else { continue };
        let (Ok(start), Ok(end)) = (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16)) else { continue };
        let part = start.max(within.start)..end.min(within.end);
        if part.is_empty() || !rest.starts_with('r') {
            continue;
        }
        match parts.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_can_be_read() {
        let maps = "e0000000-e1000000 rw-p 00000000 00:00 0 \n\
            e1000000-e2000000 ---p 00000000 00:00 0 \n\
            e2000000-e2400000 rw-p 00000000 00:00 0 \n\
            e2400000-e3000000 rw-p 00000000 00:00 0   [anon: java heap]\n\
            ffff0000-100010000 rw-p 00000000 00:00 0 \n\
            7f0000000000-7f0000001000 r-xp 00000000 00:00 0 /lib/x.so\n";
        let expected = [0xe000_0000..0xe100_0000, 0xe200_0000..0xe300_0000, 0xffff_0000..0x1_0000_0000];
        assert_eq!(committed(maps, &(0xe000_0000..0x1_0000_0000)), expected);
    }
}
