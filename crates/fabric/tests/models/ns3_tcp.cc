// Senders, a switch, a slower cable, a switch and one receiver in ns-3 3.37: the peer of ns3.rs, which holds what it printed.
//
//     apt-get install libns3-dev
//     for module in applications point-to-point traffic-control internet bridge stats network core; do
//         libraries="$libraries -lns3-$module"
//     done
//     g++ -O2 -std=c++17 ns3_tcp.cc -o ns3_tcp $libraries
//     ./ns3_tcp --cc=TcpDctcp --senders=8 --bytes=10000000 --queue=3000000 --threshold=60000
//
// ns-3 frames a packet in 2 bytes of PPP, an Ethernet port in 38 (header, check sequence, preamble, gap); the rates of cables
// are smaller by that share here, so that a full segment takes as long in both simulators.
#include <cstdio>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

static uint64_t drops = 0, marks = 0;
static double queueArea = 0;
static uint32_t queueNow = 0;
static Time queueSince;

static void Dropped(Ptr<const QueueDiscItem>, const char*) { ++drops; }
static void Marked(Ptr<const QueueDiscItem>, const char*) { ++marks; }
static void Bytes(uint32_t, uint32_t now)
{
    queueArea += queueNow * (Simulator::Now() - queueSince).GetSeconds();
    queueSince = Simulator::Now();
    queueNow = now;
}

struct Flow
{
    uint64_t bytes = 0;
    double done = 0;
};
static std::vector<Flow> flows;
static uint64_t wanted;
static size_t finished = 0;

static void Received(uint32_t flow, Ptr<const Packet> packet, const Address&)
{
    flows[flow].bytes += packet->GetSize();
    if (flows[flow].bytes >= wanted && flows[flow].done == 0)
    {
        flows[flow].done = Simulator::Now().GetSeconds();
        if (++finished == flows.size())
            Simulator::Stop();
    }
}

int main(int argc, char** argv)
{
    std::string cc = "TcpLinuxReno";
    uint32_t senders = 1, queue = 150000, threshold = 0;
    double hostRate = 10e9, rate = 1e9, delay = 20e-6;
    uint64_t bytes = 10000000;
    CommandLine line;
    line.AddValue("cc", "type of congestion control", cc);
    line.AddValue("senders", "how many", senders);
    line.AddValue("bytes", "of each", bytes);
    line.AddValue("hostRate", "bit/s of senders", hostRate);
    line.AddValue("rate", "bit/s of the cable between the switches", rate);
    line.AddValue("delay", "s of each cable", delay);
    line.AddValue("queue", "bytes of IP packets that may wait for the cable between the switches", queue);
    line.AddValue("threshold", "bytes from which packets are marked; 0: none", threshold);
    line.Parse(argc, argv);
    wanted = bytes;

    const double framing = 1502.0 / 1538.0;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + cc)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(6 << 20));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
    if (threshold > 0)
        Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));

    NodeContainer hosts;
    hosts.Create(senders);
    Ptr<Node> first = CreateObject<Node>();
    Ptr<Node> second = CreateObject<Node>();
    Ptr<Node> receiver = CreateObject<Node>();
    InternetStackHelper stack;
    stack.Install(hosts);
    stack.Install(first);
    stack.Install(second);
    stack.Install(receiver);

    PointToPointHelper link;
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delay)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(hostRate * framing))));
    Ipv4AddressHelper address;
    TrafficControlHelper none;
    for (uint32_t i = 0; i < senders; ++i)
    {
        NetDeviceContainer pair = link.Install(hosts.Get(i), first);
        char base[32];
        std::snprintf(base, sizeof base, "10.1.%u.0", i);
        address.SetBase(base, "255.255.255.0");
        address.Assign(pair);
        none.Uninstall(pair);
    }
    NetDeviceContainer end = link.Install(second, receiver);
    address.SetBase("10.3.0.0", "255.255.255.0");
    Ipv4InterfaceContainer ends = address.Assign(end);
    none.Uninstall(end);
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate * framing))));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    NetDeviceContainer narrow = link.Install(first, second);
    TrafficControlHelper control;
    char size[32];
    std::snprintf(size, sizeof size, "%uB", queue);
    if (threshold > 0)
        control.SetRootQueueDisc("ns3::RedQueueDisc", "UseEcn", BooleanValue(true), "UseHardDrop", BooleanValue(false),
            "MeanPktSize", UintegerValue(1500), "MaxSize", QueueSizeValue(QueueSize(size)), "QW", DoubleValue(1.0),
            "MinTh", DoubleValue(threshold), "MaxTh", DoubleValue(threshold));
    else
        control.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", QueueSizeValue(QueueSize(size)));
    QueueDiscContainer discs = control.Install(NetDeviceContainer(narrow.Get(0)));
    address.SetBase("10.2.0.0", "255.255.255.0");
    address.Assign(narrow);
    discs.Get(0)->TraceConnectWithoutContext("DropBeforeEnqueue", MakeCallback(&Dropped));
    discs.Get(0)->TraceConnectWithoutContext("Mark", MakeCallback(&Marked));
    discs.Get(0)->TraceConnectWithoutContext("BytesInQueue", MakeCallback(&Bytes));
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    flows.resize(senders);
    for (uint32_t i = 0; i < senders; ++i)
    {
        uint16_t port = 5000 + i;
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        ApplicationContainer there = sink.Install(receiver);
        there.Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Received, i));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(ends.GetAddress(1), port));
        bulk.SetAttribute("MaxBytes", UintegerValue(bytes));
        bulk.SetAttribute("SendSize", UintegerValue(128 << 10));
        ApplicationContainer here = bulk.Install(hosts.Get(i));
        here.Start(Seconds(0));
    }
    Simulator::Stop(Seconds(60));
    Simulator::Run();
    double sum = 0, last = 0;
    for (const Flow& flow : flows)
    {
        if (flow.done == 0)
            return 1;
        sum += flow.done;
        last = std::max(last, flow.done);
    }
    Bytes(0, queueNow);
    std::printf("mean %.6f last %.6f drops %lu marks %lu queue %.0f\n", sum / senders, last, (unsigned long)drops,
        (unsigned long)marks, queueArea / last);
}
