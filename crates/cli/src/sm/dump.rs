//! The tables of a subnet in a folder, under the names that OpenSM gives them.

use std::fs;
use std::path::Path;

use softfabric_subnet::format::dump;
use softfabric_subnet::manager::Manager;

use crate::failure::Failure;

/// Writes all tables.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn write(folder: &Path, manager: &Manager) -> Result<(), Failure> {
    let Some((view, routes)) = manager.routes() else {
        return Ok(());
    };
    let subnet = manager.subnet();
    fs::create_dir_all(folder).map_err(|error| Failure::unwritable(folder, error))?;
    let (levels, lanes) = dump::ibdmchk_levels(subnet, view, routes, |port| manager.lanes(port));
    let files = [
        ("guid2lid", dump::guid2lid(subnet)),
        ("neighbors", dump::neighbors(subnet)),
        ("opensm-lfts.dump", dump::lfts(subnet, view, routes)),
        ("opensm.fdbs", dump::fdbs(view, routes)),
        (
            "opensm.mcfdbs",
            dump::mcfdbs(view, |switch| manager.multicast_ports(switch)),
        ),
        ("opensm-subnet.lst", dump::subnet_list(subnet)),
        (
            "opensm-sl2vl.dump",
            dump::sl2vl(subnet, view, |port| manager.lanes(port)),
        ),
        ("ibdmchk.levels", levels),
        ("ibdmchk.lanes", lanes),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| Failure::unwritable(&path, error))?;
    }
    Ok(())
}
