//! The rows, and the arrays that they index.

/// What a counter counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Frames or packets.
    Packets,
    /// Bytes, where the real counter counts 4-byte words an exporter divides.
    Bytes,
    /// Things that happened.
    Events,
    /// Picoseconds here; exported in the unit that the real counter has.
    Picoseconds,
}

/// How a counter moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It only grows.
    Total,
    /// It is the largest value seen.
    Watermark,
}

/// One row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct CounterDefinition {
    /// The name that softfabric's own outputs use.
    pub id: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// How it moves.
    pub kind: Kind,
    /// One sentence for people.
    pub help: &'static str,
    /// The name under `/sys/class/infiniband` or in `ethtool -S`; empty where Linux has none.
    pub linux: &'static str,
    /// The name in a Prometheus exposition (node_exporter's, where it has one).
    pub prometheus: &'static str,
    /// The name in SONiC's COUNTERS_DB; empty where it has none.
    pub sonic: &'static str,
}

/// Makes one scope: the enum of its rows and the array of its values.
macro_rules! scope {
    (
        $(#[$doc:meta])* $counter:ident, $(#[$block_doc:meta])* $block:ident;
        $($variant:ident $id:literal $unit:ident $kind:ident $help:literal linux $linux:literal prometheus $prometheus:literal sonic $sonic:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $counter {
            $(#[doc = $help] $variant,)*
        }

        impl $counter {
            /// Every row, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            const DEFINITIONS: &'static [CounterDefinition] = &[$(CounterDefinition {
                id: $id,
                unit: Unit::$unit,
                kind: Kind::$kind,
                help: $help,
                linux: $linux,
                prometheus: $prometheus,
                sonic: $sonic,
            }),*];

            /// The row.
            pub const fn definition(self) -> &'static CounterDefinition {
                &Self::DEFINITIONS[self as usize]
            }
        }

        $(#[$block_doc])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct $block([u64; $counter::ALL.len()]);

        impl Default for $block {
            fn default() -> Self {
                Self([0; $counter::ALL.len()])
            }
        }

        impl $block {
            /// Adds `amount` to a total.
            #[inline]
            pub fn add(&mut self, counter: $counter, amount: u64) {
                self.0[counter as usize] += amount;
            }

            /// Adds one to a total.
            #[inline]
            pub fn count(&mut self, counter: $counter) {
                self.0[counter as usize] += 1;
            }

            /// Raises a watermark to `value`, if that is higher.
            #[inline]
            pub fn raise(&mut self, counter: $counter, value: u64) {
                let mark = &mut self.0[counter as usize];
                if value > *mark {
                    *mark = value;
                }
            }

            /// What has been counted.
            #[inline]
            pub fn value(&self, counter: $counter) -> u64 {
                self.0[counter as usize]
            }

            /// All rows with their values, in the order of the table.
            pub fn iter(&self) -> impl Iterator<Item = ($counter, u64)> + '_ {
                $counter::ALL.iter().map(|&counter| (counter, self.value(counter)))
            }

            /// Merges another block into this one: totals add, watermarks take the higher.
            pub fn merge(&mut self, other: &Self) {
                for (counter, value) in other.iter() {
                    match counter.definition().kind {
                        Kind::Total => self.add(counter, value),
                        Kind::Watermark => self.raise(counter, value),
                    }
                }
            }
        }
    };
}

scope! {
    /// A row of the port scope.
    PortCounter,
    /// The counters of one port.
    PortCounters;
    TransmitPackets "port_xmit_packets" Packets Total "Packets sent, pause frames left out."
        linux "port_xmit_packets" prometheus "node_infiniband_port_packets_transmitted_total" sonic "SAI_PORT_STAT_IF_OUT_UCAST_PKTS";
    TransmitBytes "port_xmit_data" Bytes Total "Bytes sent (Linux shows 4-byte words)."
        linux "port_xmit_data" prometheus "node_infiniband_port_data_transmitted_bytes_total" sonic "SAI_PORT_STAT_IF_OUT_OCTETS";
    ReceivePackets "port_rcv_packets" Packets Total "Packets received, pause frames left out."
        linux "port_rcv_packets" prometheus "node_infiniband_port_packets_received_total" sonic "SAI_PORT_STAT_IF_IN_UCAST_PKTS";
    ReceiveBytes "port_rcv_data" Bytes Total "Bytes received (Linux shows 4-byte words)."
        linux "port_rcv_data" prometheus "node_infiniband_port_data_received_bytes_total" sonic "SAI_PORT_STAT_IF_IN_OCTETS";
    TransmitDiscards "port_xmit_discards" Packets Total "Packets that were to leave by this port and were dropped."
        linux "port_xmit_discards" prometheus "node_infiniband_port_discards_transmitted_total" sonic "SAI_PORT_STAT_IF_OUT_DISCARDS";
    ReceiveDiscards "rx_discards_phy" Packets Total "Packets that arrived and were dropped for want of buffer or of a route."
        linux "rx_discards_phy" prometheus "softfabric_port_receive_discards_total" sonic "SAI_PORT_STAT_IF_IN_DISCARDS";
    ReceiveErrors "port_rcv_errors" Packets Total "Packets that arrived damaged."
        linux "port_rcv_errors" prometheus "node_infiniband_port_errors_received_total" sonic "SAI_PORT_STAT_IF_IN_ERRORS";
    TransmitWait "port_xmit_wait" Picoseconds Total "Time in which the port had something to send and could not (Linux shows ticks)."
        linux "port_xmit_wait" prometheus "node_infiniband_port_transmit_wait_total" sonic "";
    LinkDowned "link_downed" Events Total "How often the link went down."
        linux "link_downed" prometheus "node_infiniband_link_downed_total" sonic "";
    PauseFramesSent "tx_pause_ctrl_phy" Packets Total "PFC and PAUSE frames sent."
        linux "tx_pause_ctrl_phy" prometheus "softfabric_port_pause_frames_transmitted_total" sonic "";
    PauseFramesReceived "rx_pause_ctrl_phy" Packets Total "PFC and PAUSE frames received."
        linux "rx_pause_ctrl_phy" prometheus "softfabric_port_pause_frames_received_total" sonic "";
    CreditsSent "PortXmitFlowPkts" Packets Total "InfiniBand flow-control packets sent (PortFlowCtlCounters)."
        linux "" prometheus "softfabric_port_flow_control_packets_transmitted_total" sonic "";
    CreditsReceived "PortRcvFlowPkts" Packets Total "InfiniBand flow-control packets received (PortFlowCtlCounters)."
        linux "" prometheus "softfabric_port_flow_control_packets_received_total" sonic "";
    FecnReceived "PortPktRcvFECN" Packets Total "InfiniBand packets received with FECN (PortRcvConCtrl)."
        linux "" prometheus "softfabric_port_fecn_packets_received_total" sonic "";
    BecnReceived "PortPktRcvBECN" Packets Total "InfiniBand packets received with BECN (PortRcvConCtrl)."
        linux "" prometheus "softfabric_port_becn_packets_received_total" sonic "";
    SwitchLifeDiscards "PortSwLifetimeLimitDiscards" Packets Total "InfiniBand packets discarded as they were in the switch for longer than its lifetime limit (PortXmitDiscardDetails)."
        linux "" prometheus "softfabric_port_switch_lifetime_discards_total" sonic "";
    HeadLifeDiscards "PortSwHOQLifetimeLimitDiscards" Packets Total "InfiniBand packets discarded as they were at the head of a lane for longer than its lifetime limit (PortXmitDiscardDetails)."
        linux "" prometheus "softfabric_port_head_of_queue_lifetime_discards_total" sonic "";
    TransmitConstraintErrors "port_xmit_constraint_errors" Packets Total "Packets that a switch did not send by this port, as its host is not in their partition."
        linux "port_xmit_constraint_errors" prometheus "node_infiniband_port_constraint_errors_transmitted_total" sonic "";
    ReceiveConstraintErrors "port_rcv_constraint_errors" Packets Total "Packets that a switch did not take in by this port, as its host is not in their partition."
        linux "port_rcv_constraint_errors" prometheus "node_infiniband_port_constraint_errors_received_total" sonic "";
    PartitionKeyViolations "P_KeyViolations" Packets Total "Packets that an adapter dropped, as it is not in their partition (PortInfo)."
        linux "" prometheus "softfabric_port_partition_key_violations_total" sonic "";
    MulticastTransmitPackets "multicast_xmit_packets" Packets Total "InfiniBand packets to multicast groups sent (PortMulticastXmitPkts)."
        linux "multicast_xmit_packets" prometheus "node_infiniband_multicast_packets_transmitted_total" sonic "";
    MulticastReceivePackets "multicast_rcv_packets" Packets Total "InfiniBand packets to multicast groups received, damaged ones included (PortMulticastRcvPkts)."
        linux "multicast_rcv_packets" prometheus "node_infiniband_multicast_packets_received_total" sonic "";
    TransmitTimeCongested "PortXmitTimeCong" Picoseconds Total "Time in which an InfiniBand lane of the port was congested: its queue above the threshold (PortXmitConCtrl shows ticks)."
        linux "" prometheus "softfabric_port_transmit_congested_seconds_total" sonic "";
}

scope! {
    /// A row of the scope of one traffic class on one port.
    ClassCounter,
    /// The counters of one traffic class on one port.
    ClassCounters;
    TransmitPackets "tx_prio_packets" Packets Total "Packets of the class sent."
        linux "tx_prio{n}_packets" prometheus "softfabric_class_packets_transmitted_total" sonic "SAI_QUEUE_STAT_PACKETS";
    TransmitBytes "tx_prio_bytes" Bytes Total "Bytes of the class sent."
        linux "tx_prio{n}_bytes" prometheus "softfabric_class_bytes_transmitted_total" sonic "SAI_QUEUE_STAT_BYTES";
    ReceivePackets "rx_prio_packets" Packets Total "Packets of the class received."
        linux "rx_prio{n}_packets" prometheus "softfabric_class_packets_received_total" sonic "SAI_INGRESS_PRIORITY_GROUP_STAT_PACKETS";
    ReceiveBytes "rx_prio_bytes" Bytes Total "Bytes of the class received."
        linux "rx_prio{n}_bytes" prometheus "softfabric_class_bytes_received_total" sonic "SAI_INGRESS_PRIORITY_GROUP_STAT_BYTES";
    PauseSent "tx_prio_pause" Packets Total "Frames sent that pause the class at the other end."
        linux "tx_prio{n}_pause" prometheus "softfabric_class_pause_frames_transmitted_total" sonic "SAI_PORT_STAT_PFC_{n}_TX_PKTS";
    PauseReceived "rx_prio_pause" Packets Total "Frames received that pause the class here."
        linux "rx_prio{n}_pause" prometheus "softfabric_class_pause_frames_received_total" sonic "SAI_PORT_STAT_PFC_{n}_RX_PKTS";
    ResumeSent "tx_prio_resume" Packets Total "Frames sent that let the class go on at the other end."
        linux "" prometheus "softfabric_class_resume_frames_transmitted_total" sonic "";
    ResumeReceived "rx_prio_resume" Packets Total "Frames received that let the class go on here."
        linux "" prometheus "softfabric_class_resume_frames_received_total" sonic "";
    PauseSentDuration "tx_prio_pause_duration" Picoseconds Total "Time in which this end held the other end paused (Linux shows microseconds)."
        linux "tx_prio{n}_pause_duration" prometheus "softfabric_class_pause_transmitted_seconds_total" sonic "";
    PauseReceivedDuration "rx_prio_pause_duration" Picoseconds Total "Time in which the class was paused here by the other end (Linux shows microseconds)."
        linux "rx_prio{n}_pause_duration" prometheus "softfabric_class_pause_received_seconds_total" sonic "SAI_PORT_STAT_PFC_{n}_RX_PAUSE_DURATION_US";
    PauseTransitions "rx_prio_pause_transition" Events Total "How often the class went from running to paused."
        linux "rx_prio{n}_pause_transition" prometheus "softfabric_class_pause_transitions_total" sonic "SAI_PORT_STAT_PFC_{n}_ON2OFF_RX_PKTS";
    EcnMarked "ecn_marked" Packets Total "Packets that this queue marked CE (on InfiniBand: FECN)."
        linux "rx_prio{n}_marked" prometheus "softfabric_class_ecn_marked_packets_total" sonic "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS";
    EcnMarkedBytes "ecn_marked_bytes" Bytes Total "Bytes of the packets that this queue marked CE (on InfiniBand: FECN)."
        linux "" prometheus "softfabric_class_ecn_marked_bytes_total" sonic "SAI_QUEUE_STAT_WRED_ECN_MARKED_BYTES";
    IngressDropped "rx_prio_buf_discard" Packets Total "Packets of the class dropped at ingress: no buffer, no headroom."
        linux "rx_prio{n}_buf_discard" prometheus "softfabric_class_ingress_dropped_packets_total" sonic "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS";
    EgressDropped "tx_prio_discard" Packets Total "Packets of the class dropped at the egress queue: over its threshold, by RED, or by a watchdog."
        linux "rx_prio{n}_cong_discard" prometheus "softfabric_class_egress_dropped_packets_total" sonic "SAI_QUEUE_STAT_DROPPED_PACKETS";
    QueueWatermark "queue_watermark" Bytes Watermark "The most bytes that stood in the egress queue."
        linux "" prometheus "softfabric_class_queue_watermark_bytes" sonic "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES";
    IngressWatermark "ingress_watermark" Bytes Watermark "The most bytes of shared buffer that the ingress priority group held."
        linux "" prometheus "softfabric_class_ingress_watermark_bytes" sonic "SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES";
    HeadroomWatermark "headroom_watermark" Bytes Watermark "The most bytes of headroom that the ingress priority group used."
        linux "" prometheus "softfabric_class_headroom_watermark_bytes" sonic "SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES";
    WatchdogStorms "pfcwd_storms" Events Total "How often the PFC watchdog declared the queue stormed."
        linux "" prometheus "softfabric_class_watchdog_storms_total" sonic "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED";
    WatchdogRestored "pfcwd_restored" Events Total "How often the PFC watchdog restored the queue."
        linux "" prometheus "softfabric_class_watchdog_restored_total" sonic "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED";
    WatchdogDropped "pfcwd_dropped" Packets Total "Packets that the PFC watchdog dropped."
        linux "" prometheus "softfabric_class_watchdog_dropped_packets_total" sonic "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS";
}

scope! {
    /// A row of the device scope.
    DeviceCounter,
    /// The counters of one RDMA device, as Linux shows them under `hw_counters`.
    DeviceCounters;
    CnpSent "np_cnp_sent" Packets Total "Congestion notification packets sent by the notification point."
        linux "np_cnp_sent" prometheus "node_infiniband_np_cnp_packets_sent_total" sonic "";
    CnpHandled "rp_cnp_handled" Packets Total "Congestion notifications that a rate control heard: CNPs; on InfiniBand all packets with BECN."
        linux "rp_cnp_handled" prometheus "node_infiniband_rp_cnp_packets_handled_total" sonic "";
    CnpIgnored "rp_cnp_ignored" Packets Total "Congestion notification packets that no rate control listened to."
        linux "rp_cnp_ignored" prometheus "node_infiniband_rp_cnp_ignored_packets_received_total" sonic "";
    EcnMarkedReceived "np_ecn_marked_roce_packets" Packets Total "RoCE packets received with CE (on InfiniBand: packets with FECN)."
        linux "np_ecn_marked_roce_packets" prometheus "node_infiniband_np_ecn_marked_roce_packets_received_total" sonic "";
    CongestionEvents "ThresholdEventCounter" Events Total "How often a flow's index into InfiniBand's congestion control table reached the trigger threshold (CongestionLog)."
        linux "" prometheus "softfabric_device_congestion_threshold_events_total" sonic "";
    OutOfSequence "out_of_sequence" Packets Total "Request packets received ahead of the expected PSN."
        linux "out_of_sequence" prometheus "node_infiniband_out_of_sequence_packets_received_total" sonic "";
    SequenceErrorReceived "packet_seq_err" Packets Total "NAKs received for a PSN sequence error."
        linux "packet_seq_err" prometheus "node_infiniband_packet_sequence_errors_total" sonic "";
    LocalAckTimeout "local_ack_timeout_err" Events Total "How often the acknowledgement timer of a QP expired."
        linux "local_ack_timeout_err" prometheus "node_infiniband_local_ack_timeout_errors_total" sonic "";
    RnrNakReceived "rnr_nak_received" Packets Total "Receiver-not-ready NAKs received."
        linux "rnr_nak_received" prometheus "softfabric_rnr_nak_received_packets_total" sonic "";
    RnrRetriesExceeded "rnr_nak_retry_err" Events Total "How often the receiver-not-ready retries of a QP ran out."
        linux "rnr_nak_retry_err" prometheus "node_infiniband_rnr_nak_retry_packets_received_total" sonic "";
    RetriesExceeded "req_transport_retries_exceeded" Events Total "How often the retries of a QP ran out."
        linux "req_transport_retries_exceeded" prometheus "softfabric_transport_retries_exceeded_total" sonic "";
    ImpliedNak "implied_nak_seq_err" Events Total "How often a response out of order implied that one before it was lost."
        linux "implied_nak_seq_err" prometheus "node_infiniband_implied_nak_seq_errors_total" sonic "";
    DuplicateRequest "duplicate_request" Packets Total "Request packets received that had been executed before."
        linux "duplicate_request" prometheus "node_infiniband_duplicate_requests_packets_received_total" sonic "";
    OutOfBuffer "out_of_buffer" Packets Total "Messages that found no receive request."
        linux "out_of_buffer" prometheus "node_infiniband_out_of_buffer_packets_dropped_total" sonic "";
    Retransmitted "roce_adp_retrans" Packets Total "Request packets sent again."
        linux "roce_adp_retrans" prometheus "node_infiniband_roce_adp_retransmits_total" sonic "";
    SlowRestart "roce_slow_restart" Events Total "How often a QP started again slowly after a timeout."
        linux "roce_slow_restart" prometheus "node_infiniband_roce_slow_restart_used_total" sonic "";
    IcrcErrors "rx_icrc_encapsulated" Packets Total "RoCE packets received whose invariant CRC was wrong."
        linux "rx_icrc_encapsulated" prometheus "node_infiniband_rx_icrc_encapsulated_errors_total" sonic "";
    RemoteAccessErrors "req_remote_access_errors" Events Total "Requests that the other end refused for want of access."
        linux "req_remote_access_errors" prometheus "softfabric_requester_remote_access_errors_total" sonic "";
    RemoteInvalidRequests "req_remote_invalid_request" Events Total "Requests that the other end called invalid."
        linux "req_remote_invalid_request" prometheus "softfabric_requester_remote_invalid_requests_total" sonic "";
    ResponderAccessErrors "resp_remote_access_errors" Events Total "Requests refused here for want of access."
        linux "resp_remote_access_errors" prometheus "softfabric_responder_remote_access_errors_total" sonic "";
    CompletionErrors "req_cqe_error" Events Total "Send requests that completed with an error, flushes left out."
        linux "req_cqe_error" prometheus "softfabric_requester_completion_errors_total" sonic "";
    FlushedRequests "req_cqe_flush_error" Events Total "Requests flushed by a QP in the error state."
        linux "req_cqe_flush_error" prometheus "softfabric_requester_flushed_total" sonic "";
    Discarded "rx_dropped_malformed" Packets Total "Packets dropped silently: no such QP, wrong state, wrong key, malformed."
        linux "rx_dropped_malformed" prometheus "softfabric_device_discarded_packets_total" sonic "";
    WrongSource "rx_wrong_source" Packets Total "Packets for a connection dropped silently because they came from another address than its peer's."
        linux "" prometheus "softfabric_device_wrong_source_packets_total" sonic "";
}

scope! {
    /// A row of the scope of a host's TCP/IP stack.
    StackCounter,
    /// The counters of the TCP/IP stack of one host, as Linux shows them in `/proc/net/snmp` and `/proc/net/netstat`, and what
    /// it costs the processors.
    StackCounters;
    SegmentsSent "tcp_out_segs" Packets Total "TCP segments sent, those sent again included."
        linux "TcpOutSegs" prometheus "softfabric_tcp_segments_transmitted_total" sonic "";
    SegmentsReceived "tcp_in_segs" Packets Total "TCP segments received, as they came off the wire."
        linux "TcpInSegs" prometheus "softfabric_tcp_segments_received_total" sonic "";
    Retransmitted "tcp_retrans_segs" Packets Total "TCP segments with data sent again."
        linux "TcpRetransSegs" prometheus "softfabric_tcp_segments_retransmitted_total" sonic "";
    Timeouts "tcp_timeouts" Events Total "How often a retransmission timer expired."
        linux "TcpExtTCPTimeouts" prometheus "softfabric_tcp_timeouts_total" sonic "";
    FastRecoveries "tcp_fast_recoveries" Events Total "How often duplicate acknowledgements or SACK told of a loss."
        linux "TcpExtTCPSackRecovery" prometheus "softfabric_tcp_fast_recoveries_total" sonic "";
    MarkReductions "tcp_ecn_reductions" Events Total "How often marks reduced a congestion window."
        linux "" prometheus "softfabric_tcp_ecn_reductions_total" sonic "";
    EchoesReceived "tcp_ece_received" Packets Total "TCP segments received with ECN-Echo."
        linux "" prometheus "softfabric_tcp_ecn_echoes_received_total" sonic "";
    MarkedReceived "ip_in_ce_pkts" Packets Total "TCP segments with data received with CE, as the stack got them after merging."
        linux "IpExtInCEPkts" prometheus "softfabric_tcp_marked_segments_received_total" sonic "";
    Acknowledgements "tcp_pure_acks_sent" Packets Total "TCP acknowledgements sent without data."
        linux "" prometheus "softfabric_tcp_acknowledgements_transmitted_total" sonic "";
    OutOfOrder "tcp_ofo_queue" Packets Total "TCP segments kept because others before them were missing."
        linux "TcpExtTCPOFOQueue" prometheus "softfabric_tcp_out_of_order_segments_total" sonic "";
    Duplicates "tcp_duplicates_received" Packets Total "TCP segments received whose data had all been there before, were too old, or did not fit the window."
        linux "" prometheus "softfabric_tcp_duplicate_segments_total" sonic "";
    Merged "gro_segments" Packets Total "TCP segments that the stack got after frames in a row had been merged."
        linux "" prometheus "softfabric_stack_merged_segments_total" sonic "";
    RingDropped "rx_ring_full" Packets Total "Frames dropped because the receive ring was full: the processor was too slow."
        linux "rx_out_of_buffer" prometheus "softfabric_stack_ring_dropped_packets_total" sonic "";
    Interrupts "rx_interrupts" Events Total "Interrupts taken for received frames."
        linux "" prometheus "softfabric_stack_interrupts_total" sonic "";
    SystemCalls "socket_calls" Events Total "Reads and writes of applications."
        linux "" prometheus "softfabric_stack_system_calls_total" sonic "";
    SystemCallTime "cpu_system_calls" Picoseconds Total "Processor time of system calls and wake-ups, copies left out."
        linux "" prometheus "softfabric_stack_system_call_seconds_total" sonic "";
    CopyTime "cpu_copies" Picoseconds Total "Processor time of copies between applications and the kernel."
        linux "" prometheus "softfabric_stack_copy_seconds_total" sonic "";
    StackTime "cpu_stack" Picoseconds Total "Processor time of TCP/IP and the driver."
        linux "" prometheus "softfabric_stack_protocol_seconds_total" sonic "";
    InterruptTime "cpu_interrupts" Picoseconds Total "Processor time of taking interrupts."
        linux "" prometheus "softfabric_stack_interrupt_seconds_total" sonic "";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn rows() -> impl Iterator<Item = &'static CounterDefinition> {
        let ports = PortCounter::ALL.iter().map(|c| c.definition());
        let classes = ClassCounter::ALL.iter().map(|c| c.definition());
        let devices = DeviceCounter::ALL.iter().map(|c| c.definition());
        let stacks = StackCounter::ALL.iter().map(|c| c.definition());
        ports.chain(classes).chain(devices).chain(stacks)
    }

    #[test]
    fn names_are_unique_and_conventional() {
        let mut ids = BTreeSet::new();
        let mut prometheus = BTreeSet::new();
        for row in rows() {
            assert!(ids.insert(row.id), "{} twice", row.id);
            assert!(
                prometheus.insert(row.prometheus),
                "{} twice",
                row.prometheus
            );
            assert!(row.help.ends_with('.'), "{}", row.id);
            let total = row.prometheus.ends_with("_total");
            assert_eq!(
                total,
                row.kind == Kind::Total,
                "{}: totals, and only they, end in _total",
                row.prometheus
            );
        }
    }

    #[test]
    fn totals_add_and_watermarks_rise() {
        let mut sum = ClassCounters::default();
        let mut other = ClassCounters::default();
        sum.add(ClassCounter::EcnMarked, 2);
        sum.raise(ClassCounter::QueueWatermark, 10);
        other.count(ClassCounter::EcnMarked);
        other.raise(ClassCounter::QueueWatermark, 7);
        sum.merge(&other);
        assert_eq!(sum.value(ClassCounter::EcnMarked), 3);
        assert_eq!(sum.value(ClassCounter::QueueWatermark), 10);
    }
}
