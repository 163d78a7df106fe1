//! Version 1 of the format: a table in one piece.

use super::body::{Body, artifact, string, varint};
use super::{DecodeError, HEADER, claim, header};
use crate::strings::length;
use crate::table::{Class, ClassFlags, Field, FieldRef, Method, NamesTable, Shortfall, Site};
use crate::{EventSet, StringTable};

pub(super) const VERSION: u16 = 1;

/// Encodes a table as a file.
pub(super) fn encode(table: &NamesTable) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 << 16);
    artifact(&mut out, &table.artifact);
    varint(&mut out, length(table.strings.len()));
    for text in table.strings.iter() {
        string(&mut out, text);
    }
    varint(&mut out, length(table.classes.len()));
    for class in &table.classes {
        varint(&mut out, class.name.0);
        varint(&mut out, class.super_name.0);
        varint(&mut out, length(class.interfaces.len()));
        for name in &class.interfaces {
            varint(&mut out, name.0);
        }
        out.push(class.flags.0);
        varint(&mut out, class.source_file.0);
        varint(&mut out, class.first_method);
        varint(&mut out, class.first_field);
    }
    varint(&mut out, length(table.methods.len()));
    for method in &table.methods {
        for value in [method.class, method.name.0, method.descriptor.0, method.access.into(), method.line] {
            varint(&mut out, value);
        }
    }
    varint(&mut out, length(table.fields.len()));
    for field in &table.fields {
        for value in [field.class, field.name.0, field.descriptor.0, field.access.into()] {
            varint(&mut out, value);
        }
    }
    varint(&mut out, length(table.sites.len()));
    for site in &table.sites {
        for value in [site.method, site.descriptor.0, site.dimensions.into(), site.line] {
            varint(&mut out, value);
        }
    }
    varint(&mut out, length(table.field_refs.len()));
    for field in &table.field_refs {
        for value in [field.class.0, field.name.0, field.descriptor.0, field.is_static.into()] {
            varint(&mut out, value);
        }
    }
    varint(&mut out, length(table.shortfalls.len()));
    for short in &table.shortfalls {
        for value in [short.method, short.hooks.0, short.why.0] {
            varint(&mut out, value);
        }
    }
    let mut file = header(VERSION, table.artifact.events, 0, out.len());
    // Level 3 of zstd cannot fail on a buffer in memory.
    file.extend(zstd::bulk::compress(&out, 3).expect("zstd compresses any buffer"));
    file
}

/// Decodes what [`encode`] wrote.
pub(super) fn decode(file: &[u8], events: EventSet, size: usize, left: &mut usize) -> Result<NamesTable, DecodeError> {
    claim(left, size, file.len(), 0)?;
    let body = zstd::bulk::decompress(&file[HEADER..], size).map_err(DecodeError::Compression)?;
    table(Body::new(&body), events)
}

fn table(mut body: Body<'_>, events: EventSet) -> Result<NamesTable, DecodeError> {
    let mut table = NamesTable::new(body.artifact(events)?);
    table.is_whole = true;

    let count = body.count()?;
    let mut strings = StringTable::without_index();
    for _ in 0..count {
        strings.push(body.text()?);
    }
    body.strings = length(count);
    table.strings = strings;

    for _ in 0..body.count()? {
        let (name, super_name) = (body.str()?, body.str()?);
        let interfaces = (0..body.count()?).map(|_| body.str()).collect::<Result<_, _>>()?;
        table.classes.push(Class {
            name,
            super_name,
            interfaces,
            flags: ClassFlags(body.byte()?),
            source_file: body.str()?,
            first_method: body.varint()?,
            first_field: body.varint()?,
            first_site: 0,
            first_field_ref: 0,
        });
    }
    let classes = table.classes.len();
    for _ in 0..body.count()? {
        table.methods.push(Method {
            class: body.below(classes, "method of no class")?,
            name: body.str()?,
            descriptor: body.str()?,
            access: body.u16()?,
            line: body.varint()?,
        });
    }
    for _ in 0..body.count()? {
        table.fields.push(Field {
            class: body.below(classes, "field of no class")?,
            name: body.str()?,
            descriptor: body.str()?,
            access: body.u16()?,
        });
    }
    let methods = table.methods.len();
    for _ in 0..body.count()? {
        table.sites.push(Site {
            method: body.below(methods, "site of no method")?,
            descriptor: body.str()?,
            dimensions: body.u16()? as u8,
            line: body.varint()?,
        });
    }
    for _ in 0..body.count()? {
        table.field_refs.push(FieldRef {
            class: body.str()?,
            name: body.str()?,
            descriptor: body.str()?,
            is_static: body.varint()? != 0,
        });
    }
    for _ in 0..body.count()? {
        table.shortfalls.push(Shortfall {
            method: body.below(methods, "shortfall of no method")?,
            hooks: body.str()?,
            why: body.str()?,
        });
    }
    table.sort_shortfalls(0);
    let mut last = (0, 0);
    for class in &table.classes {
        let next = (class.first_method, class.first_field);
        if next.0 < last.0 || next.1 < last.1 || next.0 as usize > methods || next.1 as usize > table.fields.len() {
            return body.fail("members of a class out of order");
        }
        last = next;
    }
    Ok(table)
}
