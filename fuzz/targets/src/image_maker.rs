//! Makes a small JDK image from nothing: seeds need one, and a JDK's own is a hundred megabytes. By hand, from the
//! format's description, so that the reader is not only shown what our own writer makes.

use std::collections::BTreeMap;

/// A resource for an image.
#[derive(Clone, Debug)]
pub struct Content {
    /// Module, package folder, name, extension.
    pub name: [String; 4],
    /// Content as stored in the image.
    pub stored: Vec<u8>,
    /// Its size when unpacked, if it is packed.
    pub unpacked: Option<u64>,
}

#[derive(Default)]
struct Strings(Vec<u8>);

impl Strings {
    fn at(&mut self, text: &str) -> u64 {
        let mut wanted = text.as_bytes().to_vec();
        wanted.push(0);
        match self.0.windows(wanted.len()).position(|window| window == wanted) {
            Some(at) if at == 0 || self.0[at - 1] == 0 => at as u64,
            _ => {
                self.0.extend_from_slice(&wanted);
                (self.0.len() - wanted.len()) as u64
            }
        }
    }
}

/// The resource `/module/parent/base.extension`.
pub fn content(name: &str, stored: Vec<u8>) -> Content {
    let rest = name.trim_start_matches('/');
    let (module, rest) = rest.split_once('/').unwrap_or(("", rest));
    let (parent, file) = rest.rsplit_once('/').unwrap_or(("", rest));
    let (base, extension) = file.rsplit_once('.').unwrap_or((file, ""));
    Content { name: [module, parent, base, extension].map(str::to_owned), stored, unpacked: None }
}

/// The image of these resources, with the `/modules` tree around them and some `strings` besides.
pub fn image(resources: &[Content], strings: &[&str]) -> Vec<u8> {
    let mut texts = Strings::default();
    texts.at("");
    for text in strings {
        texts.at(text);
    }
    let mut all: Vec<(String, Content)> = resources
        .iter()
        .map(|resource| {
            let [module, parent, base, extension] = &resource.name;
            let dot = if extension.is_empty() { "" } else { "." };
            let slash = if parent.is_empty() { "" } else { "/" };
            (format!("/{module}/{parent}{slash}{base}{dot}{extension}"), resource.clone())
        })
        .collect();
    // Folders, and what they hold.
    let mut folders: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, _) in &all {
        let mut child = if name.ends_with(".class") { name.clone() } else { continue };
        let mut folder = format!("/modules{name}");
        loop {
            folder.truncate(folder.rfind('/').unwrap_or(0));
            if folder.is_empty() {
                break;
            }
            let list = folders.entry(folder.clone()).or_default();
            if !list.contains(&child) {
                list.push(child);
            }
            child = folder.clone();
        }
    }
    let kids: Vec<Vec<String>> = folders.values().cloned().collect();
    all.extend(folders.iter().map(|(name, list)| {
        (name.clone(), {
            let mut folder = content(name, vec![0; list.len() * 4]);
            if name == "/modules" {
                folder.name = ["modules", "", "", ""].map(str::to_owned);
                folder.name = ["".into(), "".into(), "/modules".into(), "".into()];
            } else {
                folder.name = ["modules".into(), "".into(), name["/modules/".len()..].into(), "".into()];
            }
            folder
        })
    }));

    let mut locations = vec![0];
    let mut offset = 0;
    let mut at: BTreeMap<String, u32> = BTreeMap::new();
    for (name, resource) in &all {
        at.insert(name.clone(), locations.len() as u32);
        let size = resource.stored.len() as u64;
        let (stored, unpacked) = resource.unpacked.map_or((0, size), |unpacked| (size, unpacked));
        let [module, parent, base, extension] = resource.name.each_ref().map(|text| texts.at(text));
        for (kind, value) in [module, parent, base, extension, offset, stored, unpacked].into_iter().enumerate() {
            if value != 0 {
                let length = 8 - value.leading_zeros() as usize / 8;
                locations.push(((kind + 1) << 3 | (length - 1)) as u8);
                locations.extend_from_slice(&value.to_be_bytes()[8 - length..]);
            }
        }
        locations.push(0);
        offset += size;
    }
    let first = all.len() - folders.len();
    for (list, (_, folder)) in kids.iter().zip(&mut all[first..]) {
        folder.stored = list.iter().flat_map(|name| at.get(name).copied().unwrap_or(0).to_le_bytes()).collect();
    }

    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let (redirect, order) = table(&names);
    let sizes = [names.len(), names.len(), locations.len(), texts.0.len()];
    let mut out = Vec::new();
    for word in [0xcafe_dada, 1 << 16, 0].into_iter().chain(sizes.map(|size| size as u32)) {
        out.extend_from_slice(&word.to_le_bytes());
    }
    redirect.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    order.iter().for_each(|index| out.extend_from_slice(&at[names[*index]].to_le_bytes()));
    out.extend_from_slice(&locations);
    out.extend_from_slice(&texts.0);
    all.iter().for_each(|(_, resource)| out.extend_from_slice(&resource.stored));
    out
}

fn hash(text: &str, seed: u32) -> usize {
    let hash = text.bytes().fold(seed, |hash, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(byte));
    (hash & 0x7fff_ffff) as usize
}

/// Redirect words, and the name in each slot.
fn table(names: &[&str]) -> (Vec<i32>, Vec<usize>) {
    let count = names.len();
    let mut buckets = vec![Vec::new(); count];
    for (index, name) in names.iter().enumerate() {
        buckets[hash(name, 0x0100_0193) % count].push(index);
    }
    let mut by_size: Vec<usize> = (0..count).collect();
    by_size.sort_by_key(|bucket| std::cmp::Reverse(buckets[*bucket].len()));
    let (mut redirect, mut slots) = (vec![0; count], vec![None; count]);
    for bucket in by_size {
        let members = &buckets[bucket];
        if members.is_empty() {
            continue;
        }
        let seed = (1..).find(|seed| {
            let mut taken: Vec<usize> = members.iter().map(|index| hash(names[*index], *seed) % count).collect();
            taken.sort_unstable();
            taken.dedup();
            taken.len() == members.len() && taken.iter().all(|slot| slots[*slot].is_none())
        });
        let seed = seed.unwrap_or(1);
        redirect[bucket] = seed as i32;
        members.iter().for_each(|index| slots[hash(names[*index], seed) % count] = Some(*index));
    }
    (redirect, slots.into_iter().map(Option::unwrap_or_default).collect())
}

#[cfg(test)]
mod tests {
    use et_instrument::container::jimage::Image;

    #[test]
    fn seeds_are_images() {
        for (name, bytes) in crate::seeds::images() {
            let image = Image::read(&bytes).unwrap();
            let resources = image.resources().unwrap();
            assert!(resources.len() > 5, "{name}");
            for resource in &resources {
                assert!(image.find(&resource.name).unwrap().is_some(), "{name}: {}", resource.name);
                image.content(resource).unwrap();
            }
        }
    }
}
