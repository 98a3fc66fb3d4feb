//! `buffers.json`: BUFFER_POOL, BUFFER_PROFILE, BUFFER_PG and BUFFER_QUEUE.

use std::path::Path;

use softfabric_units::{Bytes, Class};

use super::document::{Document, Entry};
use super::{SonicFiles, SonicSwitch};
use crate::import::ImportError;
use crate::plan::{Alpha, IngressLimit, Xon};

pub(super) fn apply(
    file: &Path,
    text: &str,
    files: &SonicFiles<'_>,
    switch: &mut SonicSwitch,
) -> Result<(), ImportError> {
    let document = Document::read(file, text)?;
    pools(&document, switch)?;
    let port = match files.port {
        Some(port) => port,
        None => first_port(&document)?,
    };
    let mut seen = false;
    for group in document.table("BUFFER_PG") {
        let (name, classes) = group.port_and_classes()?;
        if name != port {
            continue;
        }
        seen = true;
        let profile = document.entry("BUFFER_PROFILE", group.needed("profile")?, Some(group))?;
        for class in classes.filter_map(Class::checked) {
            ingress(profile, class, switch)?;
        }
    }
    for queue in document.table("BUFFER_QUEUE") {
        let (name, classes) = queue.port_and_classes()?;
        if name != port {
            continue;
        }
        seen = true;
        let profile = document.entry("BUFFER_PROFILE", queue.needed("profile")?, Some(queue))?;
        let pool = document.entry("BUFFER_POOL", profile.needed("pool")?, Some(profile))?;
        for class in classes.filter_map(Class::checked) {
            egress(profile, pool, class, switch)?;
        }
    }
    if !seen {
        let found = format!("{port}, of which neither BUFFER_PG nor BUFFER_QUEUE says anything");
        return Err(ImportError::new(
            file,
            None,
            "the port",
            found,
            "a port of the file",
        ));
    }
    Ok(())
}

/// All ingress pools together are the memory, with the headroom pool (`xoff`) where there is one.
fn pools(document: &Document<'_>, switch: &mut SonicSwitch) -> Result<(), ImportError> {
    if !document.has("BUFFER_POOL") {
        return Err(ImportError::new(
            document.file,
            None,
            "BUFFER_POOL",
            "missing",
            "the pools of the memory",
        ));
    }
    let mut total = Bytes::ZERO;
    let mut headroom = None;
    let mut count = 0;
    for pool in document.table("BUFFER_POOL") {
        if pool.needed("type")? != "ingress" {
            continue;
        }
        let size = pool.bytes("size")?.unwrap_or(Bytes::ZERO);
        count += u32::from(!size.is_zero());
        total += size;
        if let Some(xoff) = pool.bytes("xoff")? {
            total += xoff;
            headroom = Some(headroom.unwrap_or(Bytes::ZERO) + xoff);
        }
    }
    if total.is_zero() {
        switch
            .notes
            .push("the ingress pools have no size: the buffer is left as it is".to_owned());
        return Ok(());
    }
    if count > 1 {
        switch.notes.push(format!(
            "{count} ingress pools are taken as one of {total}: there is one shared memory here"
        ));
    }
    switch.profile.buffer.total = total;
    switch.profile.buffer.headroom_pool = headroom;
    Ok(())
}

fn first_port<'d>(document: &'d Document<'d>) -> Result<&'d str, ImportError> {
    for table in ["BUFFER_PG", "BUFFER_QUEUE"] {
        if let Some(entry) = document.table(table).next() {
            return Ok(entry.port_and_classes()?.0);
        }
    }
    let found = "no port";
    Err(ImportError::new(
        document.file,
        None,
        "BUFFER_PG",
        found,
        "the groups of a port",
    ))
}

fn ingress(profile: Entry<'_>, class: Class, switch: &mut SonicSwitch) -> Result<(), ImportError> {
    let total = switch.profile.buffer.total;
    let found = &mut switch.profile.classes[class.index()];
    let size = profile.bytes("size")?.unwrap_or(Bytes::ZERO);
    let headroom = profile.bytes("xoff")?;
    let threshold = profile.threshold()?.unwrap_or(found.ingress.threshold);
    if headroom.is_some() != found.lossless {
        let (is, needs) = if found.lossless {
            ("lossless", "no headroom (xoff)")
        } else {
            ("lossy", "headroom (xoff)")
        };
        let name = profile.name();
        switch.notes.push(format!(
            "class {class} is {is}, yet its profile {name} has {needs}"
        ));
    }
    found.ingress = IngressLimit {
        reserved: match headroom {
            Some(headroom) if size >= headroom => size - headroom,
            _ => size,
        },
        threshold: whole_pool(threshold, total),
        headroom: headroom.or(found.ingress.headroom),
        xon: match (profile.bytes("xon")?, profile.bytes("xon_offset")?) {
            (None, None) => found.ingress.xon,
            (xon, offset) => Xon {
                size: xon.unwrap_or(Bytes::ZERO),
                offset,
            },
        },
    };
    Ok(())
}

fn egress(
    profile: Entry<'_>,
    pool: Entry<'_>,
    class: Class,
    switch: &mut SonicSwitch,
) -> Result<(), ImportError> {
    let pool = pool.bytes("size")?.unwrap_or(switch.profile.buffer.total);
    let found = &mut switch.profile.classes[class.index()];
    if let Some(size) = profile.bytes("size")? {
        found.egress.reserved = size;
    }
    if let Some(threshold) = profile.threshold()? {
        found.egress.threshold = whole_pool(threshold, pool);
    }
    Ok(())
}

/// A static threshold as large as the pool is no limit.
fn whole_pool(threshold: Alpha, pool: Bytes) -> Alpha {
    match threshold {
        Alpha::Static(bytes) if bytes >= pool => Alpha::Unlimited,
        other => other,
    }
}
