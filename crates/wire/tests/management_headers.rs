//! Debian's headers and libibmad judge the tables of management attributes: where each field is, how long records are,
//! which bit of a component mask a field has.
//!
//! Without a C compiler, `infiniband/mad.h` (libibmad-dev) or `infiniband/iba/ib_types.h` (libopensm-dev) a test says so
//! and passes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use softfabric_wire::mad::administration::*;
use softfabric_wire::mad::congestion::*;
use softfabric_wire::mad::performance::*;
use softfabric_wire::mad::subnet::*;
use softfabric_wire::mad::{Attribute, FieldLayout};

/// Compiles and runs a C program; `None`, and a line that says so, where this machine cannot.
fn run_c(
    test: &str,
    header: &str,
    package: &str,
    libraries: &[&str],
    body: &str,
) -> Option<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = Path::new("/usr/include/infiniband").join(header);
    let compiler = Command::new("cc").arg("--version").output();
    if compiler.is_err() {
        println!("SKIPPED {test}: `cc` is not installed (package gcc)");
        return None;
    }
    if !path.is_file() {
        println!(
            "SKIPPED {test}: {} is not there (package {package})",
            path.display()
        );
        return None;
    }
    let source = folder.join(format!("{test}.c"));
    let program = folder.join(test);
    let text = format!(
        "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <infiniband/{header}>\nint main(void) {{\n{body}return 0; }}\n"
    );
    std::fs::write(&source, text).unwrap();
    let compiled = Command::new("cc")
        .args(["-w", "-I/usr/include/infiniband", "-o"])
        .args([&program, &source])
        .args(libraries)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr).into_owned();
    assert!(compiled.status.success(), "{errors}");
    let output = Command::new(program).output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

fn field(fields: &'static [FieldLayout], name: &str) -> FieldLayout {
    let mut parts = name.splitn(2, '.');
    let outer = parts.next().unwrap();
    let found = fields
        .iter()
        .find(|field| field.name == outer)
        .unwrap_or_else(|| panic!("no field {name}"));
    match parts.next() {
        None => *found,
        Some(inner) => {
            let held = field(found.inner, inner);
            FieldLayout {
                bit: found.bit + held.bit,
                ..held
            }
        }
    }
}

fn bits(bytes: &[u8], field: &FieldLayout) -> u64 {
    (field.bit..field.bit + field.width).fold(0, |value, bit| {
        value << 1 | u64::from(bytes[bit / 8] >> (7 - bit % 8) & 1)
    })
}

/// An attribute, and pairs of a field of it and libibmad's name of it.
type Names = (
    &'static [FieldLayout],
    &'static [(&'static str, &'static str)],
);

#[rustfmt::skip]
fn libibmad_names() -> Vec<Names> {
    vec![
        (NodeInfo::FIELDS, &[
            ("base_version", "NODE_BASE_VERS"), ("class_version", "NODE_CLASS_VERS"), ("node_type", "NODE_TYPE"),
            ("ports", "NODE_NPORTS"), ("system", "NODE_SYSTEM_GUID"), ("node", "NODE_GUID"), ("port", "NODE_PORT_GUID"),
            ("partition_capacity", "NODE_PARTITION_CAP"), ("device", "NODE_DEVID"), ("revision", "NODE_REVISION"),
            ("local_port", "NODE_LOCAL_PORT"), ("vendor", "NODE_VENDORID"),
        ]),
        (SwitchInfo::FIELDS, &[
            ("linear_capacity", "SW_LINEAR_FDB_CAP"), ("random_capacity", "SW_RANDOM_FDB_CAP"),
            ("multicast_capacity", "SW_MCAST_FDB_CAP"), ("linear_top", "SW_LINEAR_FDB_TOP"), ("default_port", "SW_DEF_PORT"),
            ("default_multicast_primary", "SW_DEF_MCAST_PRIM"), ("default_multicast_other", "SW_DEF_MCAST_NOT_PRIM"),
            ("packet_life", "SW_LIFE_TIME"), ("state_change", "SW_STATE_CHANGE"),
            ("optimized_levels", "SW_OPT_SLTOVL_MAPPING"), ("lids_per_port", "SW_LIDS_PER_PORT"),
            ("partition_capacity", "SW_PARTITION_ENFORCE_CAP"), ("inbound_enforcement", "SW_PARTITION_ENF_INB"),
            ("outbound_enforcement", "SW_PARTITION_ENF_OUTB"), ("inbound_raw_filter", "SW_FILTER_RAW_INB"),
            ("outbound_raw_filter", "SW_FILTER_RAW_OUTB"), ("enhanced_port_0", "SW_ENHANCED_PORT0"),
            ("multicast_top", "SW_MCAST_FDB_TOP"),
        ]),
        (PortInfo::FIELDS, &[
            ("key", "PORT_MKEY"), ("gid_prefix", "PORT_GID_PREFIX"), ("lid", "PORT_LID"), ("manager_lid", "PORT_SMLID"),
            ("capabilities", "PORT_CAPMASK"), ("diagnostic", "PORT_DIAG"), ("key_lease", "PORT_MKEY_LEASE"),
            ("local_port", "PORT_LOCAL_PORT"), ("width_enabled", "PORT_LINK_WIDTH_ENABLED"),
            ("width_supported", "PORT_LINK_WIDTH_SUPPORTED"), ("width_active", "PORT_LINK_WIDTH_ACTIVE"),
            ("speed_supported", "PORT_LINK_SPEED_SUPPORTED"), ("state", "PORT_STATE"), ("physical_state", "PORT_PHYS_STATE"),
            ("down_default", "PORT_LINK_DOWN_DEF"), ("key_protection", "PORT_MKEY_PROT_BITS"), ("lmc", "PORT_LMC"),
            ("speed_active", "PORT_LINK_SPEED_ACTIVE"), ("speed_enabled", "PORT_LINK_SPEED_ENABLED"),
            ("neighbor_mtu", "PORT_NEIGHBOR_MTU"), ("manager_level", "PORT_SMSL"), ("lane_capability", "PORT_VL_CAP"),
            ("init_type", "PORT_INIT_TYPE"), ("high_limit", "PORT_VL_HIGH_LIMIT"),
            ("arbitration_high_capacity", "PORT_VL_ARBITRATION_HIGH_CAP"),
            ("arbitration_low_capacity", "PORT_VL_ARBITRATION_LOW_CAP"), ("init_type_reply", "PORT_INIT_TYPE_REPLY"),
            ("mtu_capability", "PORT_MTU_CAP"), ("stall_count", "PORT_VL_STALL_COUNT"),
            ("head_of_queue_life", "PORT_HOQ_LIFE"), ("operational_lanes", "PORT_OPER_VLS"),
            ("enforce_inbound", "PORT_PART_EN_INB"), ("enforce_outbound", "PORT_PART_EN_OUTB"),
            ("filter_raw_inbound", "PORT_FILTER_RAW_INB"), ("filter_raw_outbound", "PORT_FILTER_RAW_OUTB"),
            ("key_violations", "PORT_MKEY_VIOL"), ("partition_violations", "PORT_PKEY_VIOL"),
            ("queue_key_violations", "PORT_QKEY_VIOL"), ("guid_capacity", "PORT_GUID_CAP"),
            ("client_reregister", "PORT_CLIENT_REREG"), ("multicast_trap_suppression", "PORT_MCAST_PKEY_SUPR_ENAB"),
            ("subnet_timeout", "PORT_SUBN_TIMEOUT"), ("response_time", "PORT_RESP_TIME_VAL"),
            ("local_physical_errors", "PORT_LOCAL_PHYS_ERR"), ("overrun_errors", "PORT_OVERRUN_ERR"),
            ("max_credit_hint", "PORT_MAX_CREDIT_HINT"), ("link_round_trip", "PORT_LINK_ROUND_TRIP"),
            ("capabilities_2", "PORT_CAPMASK2"), ("extended_speed_active", "PORT_LINK_SPEED_EXT_ACTIVE"),
            ("extended_speed_supported", "PORT_LINK_SPEED_EXT_SUPPORTED"),
            ("extended_speed_enabled", "PORT_LINK_SPEED_EXT_ENABLED"),
        ]),
        (ExtendedPortInfo::FIELDS, &[
            ("change", "MLNX_EXT_PORT_STATE_CHG_ENABLE"), ("speed_supported", "MLNX_EXT_PORT_LINK_SPEED_SUPPORTED"),
            ("speed_enabled", "MLNX_EXT_PORT_LINK_SPEED_ENABLED"), ("speed_active", "MLNX_EXT_PORT_LINK_SPEED_ACTIVE"),
        ]),
        (SmInfo::FIELDS, &[
            ("guid", "SMINFO_GUID"), ("key", "SMINFO_KEY"), ("activity", "SMINFO_ACT"), ("priority", "SMINFO_PRIO"),
            ("state", "SMINFO_STATE"),
        ]),
        (Notice::FIELDS, &[
            ("generic", "NOTICE_IS_GENERIC"), ("kind", "NOTICE_TYPE"), ("producer", "NOTICE_PRODUCER"),
            ("number", "NOTICE_TRAP_NUMBER"), ("issuer", "NOTICE_ISSUER_LID"), ("toggle", "NOTICE_TOGGLE"),
            ("count", "NOTICE_COUNT"),
        ]),
        (ClassPortInfo::FIELDS, &[
            ("base_version", "CPI_BASEVER"), ("class_version", "CPI_CLASSVER"), ("capabilities", "CPI_CAPMASK"),
            ("capabilities_2", "CPI_CAPMASK2"), ("response_time", "CPI_RESP_TIME_VALUE"),
            ("redirect_traffic_class", "CPI_REDIRECT_TC"), ("redirect_level", "CPI_REDIRECT_SL"),
            ("redirect_flow_label", "CPI_REDIRECT_FL"), ("redirect_lid", "CPI_REDIRECT_LID"),
            ("redirect_partition", "CPI_REDIRECT_PKEY"), ("redirect_qpn", "CPI_REDIRECT_QP"),
            ("redirect_qkey", "CPI_REDIRECT_QKEY"), ("trap_traffic_class", "CPI_TRAP_TC"), ("trap_level", "CPI_TRAP_SL"),
            ("trap_flow_label", "CPI_TRAP_FL"), ("trap_lid", "CPI_TRAP_LID"), ("trap_partition", "CPI_TRAP_PKEY"),
            ("trap_hop_limit", "CPI_TRAP_HL"), ("trap_qpn", "CPI_TRAP_QP"), ("trap_qkey", "CPI_TRAP_QKEY"),
        ]),
        (PortCounters::FIELDS, &[
            ("port", "PC_PORT_SELECT"), ("selection", "PC_COUNTER_SELECT"), ("symbol_errors", "PC_ERR_SYM"),
            ("link_recoveries", "PC_LINK_RECOVERS"), ("link_downed", "PC_LINK_DOWNED"), ("receive_errors", "PC_ERR_RCV"),
            ("receive_remote_errors", "PC_ERR_PHYSRCV"), ("switch_relay_errors", "PC_ERR_SWITCH_REL"),
            ("transmit_discards", "PC_XMT_DISCARDS"), ("transmit_constraint_errors", "PC_ERR_XMTCONSTR"),
            ("receive_constraint_errors", "PC_ERR_RCVCONSTR"), ("selection_2", "PC_COUNTER_SELECT2"),
            ("local_integrity_errors", "PC_ERR_LOCALINTEG"), ("buffer_overruns", "PC_ERR_EXCESS_OVR"),
            ("vl15_dropped", "PC_VL15_DROPPED"), ("transmit_data", "PC_XMT_BYTES"),
            ("receive_data", "PC_RCV_BYTES"), ("transmit_packets", "PC_XMT_PKTS"), ("receive_packets", "PC_RCV_PKTS"),
            ("transmit_wait", "PC_XMT_WAIT"),
        ]),
        (PortCountersExtended::FIELDS, &[
            ("port", "PC_EXT_PORT_SELECT"), ("selection", "PC_EXT_COUNTER_SELECT"), ("selection_2", "PC_EXT_COUNTER_SELECT2"),
            ("transmit_data", "PC_EXT_XMT_BYTES"), ("receive_data", "PC_EXT_RCV_BYTES"),
            ("transmit_packets", "PC_EXT_XMT_PKTS"), ("receive_packets", "PC_EXT_RCV_PKTS"),
            ("unicast_transmit_packets", "PC_EXT_XMT_UPKTS"), ("unicast_receive_packets", "PC_EXT_RCV_UPKTS"),
            ("multicast_transmit_packets", "PC_EXT_XMT_MPKTS"), ("multicast_receive_packets", "PC_EXT_RCV_MPKTS"),
            ("symbol_errors", "PC_EXT_ERR_SYM"), ("link_recoveries", "PC_EXT_LINK_RECOVERS"),
            ("link_downed", "PC_EXT_LINK_DOWNED"), ("receive_errors", "PC_EXT_ERR_RCV"),
            ("receive_remote_errors", "PC_EXT_ERR_PHYSRCV"), ("switch_relay_errors", "PC_EXT_ERR_SWITCH_REL"),
            ("transmit_discards", "PC_EXT_XMT_DISCARDS"), ("transmit_constraint_errors", "PC_EXT_ERR_XMTCONSTR"),
            ("receive_constraint_errors", "PC_EXT_ERR_RCVCONSTR"), ("local_integrity_errors", "PC_EXT_ERR_LOCALINTEG"),
            ("buffer_overruns", "PC_EXT_ERR_EXCESS_OVR"), ("vl15_dropped", "PC_EXT_VL15_DROPPED"),
            ("transmit_wait", "PC_EXT_XMT_WAIT"), ("qp1_dropped", "PC_EXT_QP1_DROP"),
        ]),
        (CongestionInfo::FIELDS, &[
            ("capabilities", "CC_CONGESTION_INFO"), ("table_blocks", "CC_CONGESTION_INFO_CONTROL_TABLE_CAP"),
        ]),
        (CongestionKeyInfo::FIELDS, &[
            ("key", "CC_CONGESTION_KEY_INFO_CC_KEY"), ("protect", "CC_CONGESTION_KEY_INFO_CC_KEY_PROTECT_BIT"),
            ("lease", "CC_CONGESTION_KEY_INFO_CC_KEY_LEASE_PERIOD"),
            ("violations", "CC_CONGESTION_KEY_INFO_CC_KEY_VIOLATIONS"),
        ]),
        (SwitchCongestionSetting::FIELDS, &[
            ("control_map", "CC_SWITCH_CONGESTION_SETTING_CONTROL_MAP"),
            ("threshold", "CC_SWITCH_CONGESTION_SETTING_THRESHOLD"),
            ("packet_size", "CC_SWITCH_CONGESTION_SETTING_PACKET_SIZE"),
            ("starvation_threshold", "CC_SWITCH_CONGESTION_SETTING_CS_THRESHOLD"),
            ("starvation_return_delay", "CC_SWITCH_CONGESTION_SETTING_CS_RETURN_DELAY"),
            ("marking_rate", "CC_SWITCH_CONGESTION_SETTING_MARKING_RATE"),
        ]),
        (SwitchPortSetting::FIELDS, &[
            ("valid", "CC_SWITCH_PORT_CONGESTION_SETTING_ELEMENT_VALID"),
            ("starvation", "CC_SWITCH_PORT_CONGESTION_SETTING_ELEMENT_CONTROL_TYPE"),
            ("threshold", "CC_SWITCH_PORT_CONGESTION_SETTING_ELEMENT_THRESHOLD"),
            ("packet_size", "CC_SWITCH_PORT_CONGESTION_SETTING_ELEMENT_PACKET_SIZE"),
            ("parameter", "CC_SWITCH_PORT_CONGESTION_SETTING_ELEMENT_CONG_PARM_MARKING_RATE"),
        ]),
        (AdapterCongestionSetting::FIELDS, &[
            ("port_control", "CC_CA_CONGESTION_SETTING_PORT_CONTROL"),
            ("control_map", "CC_CA_CONGESTION_SETTING_CONTROL_MAP"),
        ]),
        (LevelReaction::FIELDS, &[
            ("timer", "CC_CA_CONGESTION_ENTRY_CCTI_TIMER"), ("increase", "CC_CA_CONGESTION_ENTRY_CCTI_INCREASE"),
            ("trigger", "CC_CA_CONGESTION_ENTRY_TRIGGER_THRESHOLD"), ("minimum", "CC_CA_CONGESTION_ENTRY_CCTI_MIN"),
        ]),
        (CongestionControlTable::FIELDS, &[("limit", "CC_CONGESTION_CONTROL_TABLE_CCTI_LIMIT")]),
        (ControlTableEntry::FIELDS, &[
            ("shift", "CC_CONGESTION_CONTROL_TABLE_ENTRY_CCT_SHIFT"),
            ("multiplier", "CC_CONGESTION_CONTROL_TABLE_ENTRY_CCT_MULTIPLIER"),
        ]),
        (NodeRecord::FIELDS, &[
            ("lid", "SA_NR_LID"), ("info.node_type", "SA_NR_TYPE"), ("info.ports", "SA_NR_NPORTS"), ("info.node", "SA_NR_GUID"),
            ("info.port", "SA_NR_PORT_GUID"), ("info.device", "SA_NR_DEVID"), ("info.local_port", "SA_NR_LOCAL_PORT"),
            ("info.vendor", "SA_NR_VENDORID"),
        ]),
        (PathRecord::FIELDS, &[
            ("destination_lid", "SA_PR_DLID"), ("source_lid", "SA_PR_SLID"), ("paths", "SA_PR_NPATH"), ("level", "SA_PR_SL"),
        ]),
        (MemberRecord::FIELDS, &[
            ("qkey", "SA_MCM_QKEY"), ("lid", "SA_MCM_MLID"), ("level", "SA_MCM_SL"), ("mtu", "SA_MCM_MTU"),
            ("rate", "SA_MCM_RATE"), ("traffic_class", "SA_MCM_TCLASS"), ("partition", "SA_MCM_PKEY"),
            ("flow_label", "SA_MCM_FLOW_LABEL"), ("join_state", "SA_MCM_JOIN_STATE"), ("proxy_join", "SA_MCM_PROXY_JOIN"),
        ]),
        (ServiceRecord::FIELDS, &[
            ("id", "SA_SR_ID"), ("partition", "SA_SR_PKEY"), ("lease", "SA_SR_LEASE"),
        ]),
        (GuidInfoRecord::FIELDS, &[("lid", "SA_GIR_LID"), ("block", "SA_GIR_BLOCKNUM")]),
    ]
}

#[test]
fn libibmad_reads_the_same_fields() {
    let test = "libibmad_reads_the_same_fields";
    let bytes: Vec<u8> = (0..256_u32)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let mut body = String::from("static uint8_t bytes[256] = {");
    for byte in &bytes {
        write!(body, "{byte},").unwrap();
    }
    body.push_str("};\n");
    let names = libibmad_names();
    for (fields, pairs) in &names {
        for (name, theirs) in *pairs {
            let getter = if field(fields, name).width == 64 {
                "mad_get_field64"
            } else {
                "mad_get_field"
            };
            writeln!(
                body,
                "printf(\"%llu\\n\", (unsigned long long){getter}(bytes, 0, IB_{theirs}_F));"
            )
            .unwrap();
        }
    }
    let Some(output) = run_c(
        test,
        "mad.h",
        "libibmad-dev",
        &["-libmad", "-libumad"],
        &body,
    ) else {
        return;
    };
    let mut values = output.lines().map(|line| line.parse::<u64>().unwrap());
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (fields, pairs) in names {
        for (name, theirs) in pairs {
            let ours = bits(&bytes, &field(fields, name));
            let value = values.next().unwrap();
            compared += 1;
            if ours != value {
                wrong.push(format!(
                    "{name}: {ours:#x}, and IB_{theirs}_F is {value:#x}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(compared > 190, "{compared}");
}

/// A structure of `ib_types.h`, its attribute's fields, pairs of a field of it and theirs, and the bytes that it should have.
type Offsets = (
    &'static str,
    &'static [FieldLayout],
    usize,
    &'static [(&'static str, &'static str)],
);

/// The bytes of a record in a table.
const fn padded<A: Attribute>() -> usize {
    attribute_offset::<A>() as usize * 8
}

#[rustfmt::skip]
fn structures() -> Vec<Offsets> {
    vec![
        ("ib_node_info_t", NodeInfo::FIELDS, 40, &[("system", "sys_guid"), ("vendor", "port_num_vendor_id")]),
        ("ib_switch_info_t", SwitchInfo::FIELDS, 20, &[("multicast_top", "mcast_top"), ("packet_life", "life_state")]),
        ("ib_guid_info_t", GuidInfo::FIELDS, 64, &[]),
        ("ib_pkey_table_t", PartitionTable::FIELDS, 64, &[]),
        ("ib_slvl_table_t", ServiceLevelMap::FIELDS, 8, &[]),
        ("ib_vl_arb_table_t", VlArbitration::FIELDS, 64, &[]),
        ("ib_mlnx_ext_port_info_t", ExtendedPortInfo::FIELDS, 64, &[("speed_active", "link_speed_active")]),
        ("ib_mad_notice_attr_t", Notice::FIELDS, 80, &[("details", "data_details"), ("issuer_gid", "issuer_gid")]),
        ("ib_class_port_info_t", ClassPortInfo::FIELDS, 72, &[("redirect_gid", "redir_gid"), ("trap_gid", "trap_gid")]),
        ("ib_port_counters_t", PortCounters::FIELDS, 44, &[("qp1_dropped", "qp1_dropped"), ("transmit_wait", "xmit_wait")]),
        ("ib_port_counters_ext_t", PortCountersExtended::FIELDS, 184, &[("qp1_dropped", "qp1_dropped")]),
        ("ib_sw_cong_setting_t", SwitchCongestionSetting::FIELDS, 76, &[("victim_mask", "victim_mask"), ("credit_mask", "credit_mask")]),
        ("ib_sw_port_cong_setting_t", SwitchPortCongestionSetting::FIELDS, 128, &[]),
        ("ib_ca_cong_setting_t", AdapterCongestionSetting::FIELDS, 132, &[("levels", "entry_list")]),
        ("ib_cc_tbl_t", CongestionControlTable::FIELDS, 132, &[("entries", "entry_list")]),
        ("ib_node_record_t", NodeRecord::FIELDS, padded::<NodeRecord>(), &[("info", "node_info"), ("description", "node_desc")]),
        ("ib_portinfo_record_t", PortInfoRecord::FIELDS, padded::<PortInfoRecord>(), &[("port", "port_num"), ("options", "options"), ("info", "port_info")]),
        ("ib_switch_info_record_t", SwitchInfoRecord::FIELDS, padded::<SwitchInfoRecord>(), &[("info", "switch_info")]),
        ("ib_sminfo_record_t", SmInfoRecord::FIELDS, padded::<SmInfoRecord>(), &[("info", "sm_info")]),
        ("ib_lft_record_t", ForwardingRecord::FIELDS, padded::<ForwardingRecord>(), &[("block", "block_num"), ("ports", "lft")]),
        ("ib_mft_record_t", MulticastForwardingRecord::FIELDS, padded::<MulticastForwardingRecord>(), &[("position", "position_block_num"), ("ports", "mft")]),
        ("ib_slvl_table_record_t", LevelMapRecord::FIELDS, padded::<LevelMapRecord>(), &[("input", "in_port_num"), ("output", "out_port_num"), ("map", "slvl_tbl")]),
        ("ib_vl_arb_table_record_t", VlArbitrationRecord::FIELDS, padded::<VlArbitrationRecord>(), &[("port", "port_num"), ("block", "block_num"), ("entries", "vl_arb_tbl")]),
        ("ib_pkey_table_record_t", PartitionTableRecord::FIELDS, padded::<PartitionTableRecord>(), &[("block", "block_num"), ("port", "port_num"), ("keys", "pkey_tbl")]),
        ("ib_link_record_t", LinkRecord::FIELDS, padded::<LinkRecord>(), &[("from_port", "from_port_num"), ("to_port", "to_port_num"), ("to_lid", "to_lid")]),
        ("ib_guidinfo_record_t", GuidInfoRecord::FIELDS, padded::<GuidInfoRecord>(), &[("guids", "guid_info")]),
        ("ib_path_rec_t", PathRecord::FIELDS, padded::<PathRecord>(), &[
            ("service", "service_id"), ("destination_gid", "dgid"), ("source_gid", "sgid"), ("raw", "hop_flow_raw"), ("traffic_class", "tclass"),
            ("partition", "pkey"), ("qos_class", "qos_class_sl"), ("mtu_selector", "mtu"), ("rate_selector", "rate"),
            ("lifetime_selector", "pkt_life"), ("preference", "preference"),
        ]),
        ("ib_member_rec_t", MemberRecord::FIELDS, padded::<MemberRecord>(), &[
            ("group", "mgid"), ("port", "port_gid"), ("qkey", "qkey"), ("lid", "mlid"), ("mtu_selector", "mtu"), ("rate_selector", "rate"),
            ("lifetime_selector", "pkt_life"), ("level", "sl_flow_hop"), ("scope", "scope_state"),
        ]),
        ("ib_service_record_t", ServiceRecord::FIELDS, padded::<ServiceRecord>(), &[
            ("gid", "service_gid"), ("key", "service_key"), ("name", "service_name"), ("data8", "service_data8"),
            ("data16", "service_data16"), ("data32", "service_data32"), ("data64", "service_data64"),
        ]),
        ("ib_inform_info_t", InformInfo::FIELDS, 36, &[
            ("first_lid", "lid_range_begin"), ("last_lid", "lid_range_end"), ("generic", "is_generic"), ("subscribe", "subscribe"),
            ("kind", "trap_type"), ("number", "g_or_v.generic.trap_num"), ("qpn", "g_or_v.generic.qpn_resp_time_val"),
            ("producer", "g_or_v.generic.node_type_msb"),
        ]),
        ("ib_inform_info_record_t", InformInfoRecord::FIELDS, padded::<InformInfoRecord>(), &[("number", "subscriber_enum"), ("info", "inform_info")]),
    ]
}

/// A member of the union of details, its attribute's fields, pairs of names.
type Details = (
    &'static str,
    &'static [FieldLayout],
    &'static [(&'static str, &'static str)],
);

/// Details of traps, within the union of `ib_mad_notice_attr_t`.
#[rustfmt::skip]
fn traps() -> Vec<Details> {
    vec![
        ("ntc_64_67", GidTrap::FIELDS, &[("gid", "gid")]),
        ("ntc_128", StateTrap::FIELDS, &[("lid", "sw_lid")]),
        ("ntc_129_131", PortTrap::FIELDS, &[("lid", "lid"), ("port", "port_num")]),
        ("ntc_144", CapabilityTrap::FIELDS, &[("lid", "lid"), ("other_changes", "local_changes"), ("capabilities", "new_cap_mask"), ("changes", "change_flgs"), ("capabilities_2", "cap_mask2")]),
        ("ntc_145", SystemTrap::FIELDS, &[("lid", "lid"), ("system", "new_sys_guid")]),
        ("ntc_256", ManagementKeyTrap::FIELDS, &[("lid", "lid"), ("directed_source", "dr_slid"), ("method", "method"), ("attribute", "attr_id"), ("modifier", "attr_mod"), ("key", "mkey"), ("directed", "dr_trunc_hop"), ("path", "dr_rtn_path")]),
        ("ntc_257_258", KeyTrap::FIELDS, &[("source", "lid1"), ("destination", "lid2"), ("key", "key"), ("level", "qp1"), ("destination_qpn", "qp2"), ("source_gid", "gid1"), ("destination_gid", "gid2")]),
        ("ntc_259", SwitchPartitionTrap::FIELDS, &[("valid", "data_valid"), ("source", "lid1"), ("destination", "lid2"), ("key", "pkey"), ("level", "sl_qp1"), ("destination_qpn", "qp2"), ("source_gid", "gid1"), ("destination_gid", "gid2"), ("switch", "sw_lid"), ("port", "port_no")]),
    ]
}

/// Headers keep fields of less than a byte, and numbers of 24 bits, in the byte or word that starts before them.
const fn same_place(bit: usize, offset: usize) -> bool {
    bit / 8 == offset || bit / 8 == offset + 1
}

#[test]
fn opensm_has_the_same_structures() {
    let test = "opensm_has_the_same_structures";
    let mut body = String::new();
    let mut expected = Vec::new();
    for (structure, fields, size, pairs) in structures() {
        writeln!(body, "printf(\"%zu\\n\", sizeof({structure}));").unwrap();
        expected.push((format!("sizeof {structure}"), size * 8, true));
        for (name, theirs) in pairs {
            writeln!(body, "printf(\"%zu\\n\", offsetof({structure}, {theirs}));").unwrap();
            let exact = !matches!(*theirs, "port_num_vendor_id" | "node_type_msb");
            expected.push((
                format!("{structure}.{theirs}"),
                field(fields, name).bit,
                exact,
            ));
        }
    }
    for (name, fields, pairs) in traps() {
        for (ours, theirs) in pairs {
            let union = format!("data_details.{name}");
            writeln!(
                body,
                "printf(\"%zu\\n\", offsetof(ib_mad_notice_attr_t, {union}.{theirs}) - offsetof(ib_mad_notice_attr_t, data_details));"
            )
            .unwrap();
            let exact = !matches!(*theirs, "qp2");
            expected.push((format!("{name}.{theirs}"), field(fields, ours).bit, exact));
        }
    }
    let Some(output) = run_c(test, "iba/ib_types.h", "libopensm-dev", &[], &body) else {
        return;
    };
    let mut wrong = Vec::new();
    let lines: Vec<usize> = output.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(lines.len(), expected.len());
    for ((what, bit, exact), theirs) in expected.iter().zip(lines) {
        let fine = if *exact {
            bit / 8 == theirs
        } else {
            same_place(*bit, theirs)
        };
        if !fine {
            wrong.push(format!("{what} is {theirs}, and here {}", bit / 8));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[rustfmt::skip]
fn masks() -> Vec<(&'static str, u64)> {
    fn of<A: Attribute>(name: &'static str, inner: &'static str) -> u64 {
        component::<A>(name, inner).0
    }
    vec![
        ("PR_COMPMASK_SERVICEID", of::<PathRecord>("service", "")),
        ("PR_COMPMASK_DGID", of::<PathRecord>("destination_gid", "")),
        ("PR_COMPMASK_SLID", of::<PathRecord>("source_lid", "")),
        ("PR_COMPMASK_FLOWLABEL", of::<PathRecord>("flow_label", "")),
        ("PR_COMPMASK_REVERSIBLE", of::<PathRecord>("reversible", "")),
        ("PR_COMPMASK_QOS_CLASS", of::<PathRecord>("qos_class", "")),
        ("PR_COMPMASK_PKTLIFETIME", of::<PathRecord>("lifetime", "")),
        ("MPR_COMPMASK_RAWTRAFFIC", of::<MultiPathRecord>("raw", "")),
        ("MPR_COMPMASK_FLOWLABEL", of::<MultiPathRecord>("flow_label", "")),
        ("MPR_COMPMASK_HOPLIMIT", of::<MultiPathRecord>("hop_limit", "")),
        ("MPR_COMPMASK_TCLASS", of::<MultiPathRecord>("traffic_class", "")),
        ("MPR_COMPMASK_REVERSIBLE", of::<MultiPathRecord>("reversible", "")),
        ("MPR_COMPMASK_NUMBPATH", of::<MultiPathRecord>("paths", "")),
        ("MPR_COMPMASK_PKEY", of::<MultiPathRecord>("partition", "")),
        ("MPR_COMPMASK_QOS_CLASS", of::<MultiPathRecord>("qos_class", "")),
        ("MPR_COMPMASK_SL", of::<MultiPathRecord>("level", "")),
        ("MPR_COMPMASK_MTUSELEC", of::<MultiPathRecord>("mtu_selector", "")),
        ("MPR_COMPMASK_MTU", of::<MultiPathRecord>("mtu", "")),
        ("MPR_COMPMASK_RATE", of::<MultiPathRecord>("rate", "")),
        ("MPR_COMPMASK_PKTLIFETIME", of::<MultiPathRecord>("lifetime", "")),
        ("MPR_COMPMASK_SERVICEID_MSB", of::<MultiPathRecord>("service_high", "")),
        ("MPR_COMPMASK_INDEPSELEC", of::<MultiPathRecord>("independence", "")),
        ("MPR_COMPMASK_SGIDCOUNT", of::<MultiPathRecord>("sources", "")),
        ("MPR_COMPMASK_DGIDCOUNT", of::<MultiPathRecord>("destinations", "")),
        ("MPR_COMPMASK_SERVICEID_LSB", of::<MultiPathRecord>("service_low", "")),
        ("MCR_COMPMASK_MLID", of::<MemberRecord>("lid", "")),
        ("MCR_COMPMASK_FLOW", of::<MemberRecord>("flow_label", "")),
        ("MCR_COMPMASK_PROXY", of::<MemberRecord>("proxy_join", "")),
        ("NR_COMPMASK_LID", of::<NodeRecord>("lid", "")),
        ("NR_COMPMASK_NODETYPE", of::<NodeRecord>("info", "node_type")),
        ("NR_COMPMASK_PORTGUID", of::<NodeRecord>("info", "port")),
        ("NR_COMPMASK_VENDID", of::<NodeRecord>("info", "vendor")),
        ("NR_COMPMASK_NODEDESC", of::<NodeRecord>("description", "")),
        ("PIR_COMPMASK_PORTNUM", of::<PortInfoRecord>("port", "")),
        ("PIR_COMPMASK_BASELID", of::<PortInfoRecord>("info", "lid")),
        ("PIR_COMPMASK_LMC", of::<PortInfoRecord>("info", "lmc")),
        ("PIR_COMPMASK_GUIDCAP", of::<PortInfoRecord>("info", "guid_capacity")),
        ("PIR_COMPMASK_SUBNTO", of::<PortInfoRecord>("info", "subnet_timeout")),
        ("PIR_COMPMASK_RESPTIME", of::<PortInfoRecord>("info", "response_time")),
        ("PIR_COMPMASK_LINKRTLAT", of::<PortInfoRecord>("info", "link_round_trip")),
        ("PIR_COMPMASK_LINKSPDEXTENAB", of::<PortInfoRecord>("info", "extended_speed_enabled")),
        ("SR_COMPMASK_SLEASE", of::<ServiceRecord>("lease", "")),
        ("SR_COMPMASK_SNAME", of::<ServiceRecord>("name", "")),
        ("SR_COMPMASK_SDATA64_0 | IB_SR_COMPMASK_SDATA64_1", of::<ServiceRecord>("data64", "")),
        ("LR_COMPMASK_TO_LID", of::<LinkRecord>("to_lid", "")),
        ("VLA_COMPMASK_BLOCK", of::<VlArbitrationRecord>("block", "")),
        ("SLVL_COMPMASK_OUT_PORT", of::<LevelMapRecord>("output", "")),
        ("PKEY_COMPMASK_PORT", of::<PartitionTableRecord>("port", "")),
        ("LFTR_COMPMASK_BLOCK", of::<ForwardingRecord>("block", "")),
        ("MFTR_COMPMASK_POSITION", of::<MulticastForwardingRecord>("position", "")),
        ("MFTR_COMPMASK_BLOCK", of::<MulticastForwardingRecord>("block", "")),
        ("GIR_COMPMASK_BLOCKNUM", of::<GuidInfoRecord>("block", "")),
        ("GIR_COMPMASK_GID0 | IB_GIR_COMPMASK_GID7", of::<GuidInfoRecord>("guids", "guids") & 0x0810),
        ("SMIR_COMPMASK_GUID", of::<SmInfoRecord>("info", "guid")),
        ("SMIR_COMPMASK_SMSTATE", of::<SmInfoRecord>("info", "state")),
        ("IIR_COMPMASK_ENUM", of::<InformInfoRecord>("number", "")),
        ("IIR_COMPMASK_LIDRANGEEND", of::<InformInfoRecord>("info", "last_lid")),
        ("IIR_COMPMASK_QPN", of::<InformInfoRecord>("info", "qpn")),
        ("IIR_COMPMASK_RESPTIME", of::<InformInfoRecord>("info", "response_time")),
        ("IIR_COMPMASK_PRODTYPE", of::<InformInfoRecord>("info", "producer")),
    ]
}

#[test]
fn opensm_numbers_components_alike() {
    let mut body = String::new();
    for (theirs, _) in masks() {
        writeln!(
            body,
            "printf(\"%llu\\n\", (unsigned long long)__builtin_bswap64(IB_{theirs}));"
        )
        .unwrap();
    }
    let test = "opensm_numbers_components_alike";
    let Some(output) = run_c(test, "iba/ib_types.h", "libopensm-dev", &[], &body) else {
        return;
    };
    let theirs: BTreeMap<&str, u64> = masks()
        .iter()
        .map(|(name, _)| *name)
        .zip(output.lines().map(|line| line.parse().unwrap()))
        .collect();
    assert_eq!(masks().into_iter().collect::<BTreeMap<_, _>>(), theirs);
}
