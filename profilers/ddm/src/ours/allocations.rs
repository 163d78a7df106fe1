//! Allocations of a traced program by class, site and context (`ETAL`).

use crate::wire::{Malformed, Reader, Writer};

/// Allocations in one place since the last report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Class name with dots.
    pub class: String,
    /// `com.acme.Cache.put:17`; empty if sites are not known.
    pub site: String,
    /// The callers of the site's method, innermost first, `;` between them; empty if they are not known.
    pub context: String,
    /// Number of objects.
    pub objects: u64,
    /// Their total size in bytes.
    pub bytes: u64,
}

/// Allocations since the last report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// Milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// How long ago the last report was.
    pub interval_ms: u32,
    /// All objects, of places that are left out as well.
    pub objects: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// The places with the most bytes.
    pub sites: Vec<Site>,
}

impl Allocations {
    pub(crate) fn read(data: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an ETAL chunk", data);
        let (time_ms, interval_ms) = (reader.u8()?, reader.u4()?);
        let (objects, bytes) = (reader.u8()?, reader.u8()?);
        let count = reader.count(3 * 4 + 2 * 8)?;
        let mut sites = Vec::with_capacity(count);
        for _ in 0..count {
            sites.push(Site {
                class: reader.text()?,
                site: reader.text()?,
                context: reader.text()?,
                objects: reader.u8()?,
                bytes: reader.u8()?,
            });
        }
        reader.end()?;
        Ok(Self { time_ms, interval_ms, objects, bytes, sites })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u8(self.time_ms).u4(self.interval_ms).u8(self.objects).u8(self.bytes).count(self.sites.len());
        for site in &self.sites {
            out.text(&site.class).text(&site.site).text(&site.context).u8(site.objects).u8(site.bytes);
        }
        out.finish()
    }
}
