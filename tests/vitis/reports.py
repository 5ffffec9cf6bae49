"""Sample reports, hand-made in the formats that AMD documents: nobody here has Vitis, none of these came out of it.

csynth.xml: UG1399, "Output of C Synthesis". The timing summary: UG906, "Report Timing Summary". kernel_util_routed.rpt:
UG1393. The figures are invented. Only the tables that are read are here, in the surroundings that make them awkward:
other sections with rows of the same form, clocks without paths, a second kernel clock, ranges in place of numbers.
"""

from __future__ import annotations

from pathlib import Path

from scripts.vitis.csynth import pipelined_loops
from scripts.vitis.provenance import kernel_sources

ROOT = Path(__file__).parents[2]


def csynth_xml(intervals: dict[str, int | None], *, version: str = "2022.2", estimated: str = "2.433") -> str:
    """A csynth.xml whose loops have these intervals; None: a loop that is not pipelined."""
    modules = "".join(
        f"""
        <Module>
            <Name>{label.removesuffix("_loop")}_Pipeline_{label}</Name>
            <Loops><{label}/></Loops>
            <PerformanceEstimates>
                <SummaryOfLoopLatency>
                    <{label}>
                        <Name>{label}</Name>
                        <TripCount><range><min>0</min><max>268435456</max></range></TripCount>
                        <Latency>0 ~ 268435459</Latency>
                        {f"<PipelineII>{interval}</PipelineII>" if interval is not None else ""}
                        <PipelineDepth>5</PipelineDepth>
                        <PipelineType>{"no" if interval is None else "yes"}</PipelineType>
                        <InstanceList/>
                    </{label}>
                </SummaryOfLoopLatency>
            </PerformanceEstimates>
        </Module>"""
        for label, interval in intervals.items()
    )
    return f"""<profile>
    <ReportVersion><Version>{version}</Version></ReportVersion>
    <UserAssignments>
        <unit>ns</unit>
        <ProductFamily>kintexuplus</ProductFamily>
        <Part>xcku15p-ffva1156-2LV-e</Part>
        <TopModelName>qk_score</TopModelName>
        <TargetClockPeriod>3.33</TargetClockPeriod>
        <ClockUncertainty>0.90</ClockUncertainty>
        <FlowTarget>vitis</FlowTarget>
    </UserAssignments>
    <PerformanceEstimates>
        <PipelineType>dataflow</PipelineType>
        <SummaryOfTimingAnalysis><unit>ns</unit><EstimatedClockPeriod>{estimated}</EstimatedClockPeriod></SummaryOfTimingAnalysis>
        <SummaryOfOverallLatency><Best-caseLatency>undef</Best-caseLatency></SummaryOfOverallLatency>
    </PerformanceEstimates>
    <AreaEstimates>
        <Resources><BRAM_18K>202</BRAM_18K><DSP>291</DSP><FF>27800</FF><LUT>51000</LUT><URAM>0</URAM></Resources>
    </AreaEstimates>
    <ModuleInformation>
        <Module>
            <Name>entry_proc</Name>
            <Loops/>
            <PerformanceEstimates><SummaryOfLoopLatency/></PerformanceEstimates>
        </Module>{modules}
    </ModuleInformation>
</profile>
"""


# What a good synthesis of the kernel as it is would report.
CSYNTH = csynth_xml(dict(pipelined_loops(kernel_sources(ROOT))))

_TABLE = "WNS(ns)      TNS(ns)  TNS Failing Endpoints  TNS Total Endpoints      WHS(ns)      THS(ns)"
TIMING = f"""Copyright 1986-2022 Xilinx, Inc. All Rights Reserved.
| Tool Version      : Vivado v.2022.2 (lin64) Build 3671981
| Device            : xcku15p-ffva1156

Timing Summary Report

------------------------------------------------------------------------------------------------
| Timer Settings
| --------------
------------------------------------------------------------------------------------------------

  Enable Multi Corner Analysis               :  Yes

------------------------------------------------------------------------------------------------
| Design Timing Summary
| ---------------------
------------------------------------------------------------------------------------------------

    {_TABLE}
    -------      -------  ---------------------  -------------------      -------      -------
      0.009        0.000                      0               512345        0.010        0.000                      0

All user specified timing constraints are met.

------------------------------------------------------------------------------------------------
| Clock Summary
| -------------
------------------------------------------------------------------------------------------------

Clock                              Waveform(ns)         Period(ns)      Frequency(MHz)
-----                              ------------         ----------      --------------
pcie_ref_clk                       {{0.000 5.000}}        10.000          100.000
  xdma_axi_aclk                    {{0.000 2.000}}        4.000           250.000
  clk_kernel_00_unbuffered_net     {{0.000 1.667}}        3.333           300.030
  clk_kernel_01_unbuffered_net     {{0.000 1.000}}        2.000           500.000

------------------------------------------------------------------------------------------------
| Intra Clock Table
| -----------------
------------------------------------------------------------------------------------------------

Clock                              {_TABLE}
-----                              -------      -------  ---------------------  -------------------      -------
pcie_ref_clk
  xdma_axi_aclk                      0.009        0.000                      0               201234        0.010        0.000                      0               201234
  clk_kernel_00_unbuffered_net       0.021        0.000                      0               143210        0.012        0.000                      0               143210
  clk_kernel_01_unbuffered_net       1.204        0.000                      0                   38        0.054        0.000                      0                   38

------------------------------------------------------------------------------------------------
| Inter Clock Table
| -----------------
------------------------------------------------------------------------------------------------

From Clock                    To Clock                      WNS(ns)      TNS(ns)  TNS Failing Endpoints
----------                    --------                      -------      -------  ---------------------
xdma_axi_aclk                 clk_kernel_00_unbuffered_net       -1.234      -9.000       12
"""  # noqa: E501

UTILISATION = """
+---------------------+------------------+------------------+-------------------+----------------+---------------+--------------+
| Name                | LUT              | LUTAsMem         | REG               | BRAM           | URAM          | DSP          |
+---------------------+------------------+------------------+-------------------+----------------+---------------+--------------+
| Platform            | 121567 [ 23.26%] |  14209 [  7.90%] |  187654 [ 17.95%] |  243 [ 24.70%] |   0 [  0.00%] |   10 [ 0.51%] |
| User Budget         | 331000 [100.00%] | 165500 [100.00%] |  680000 [100.00%] |  646 [100.00%] | 104 [100.00%] | 1341 [100.00%] |
|    Used Resources   |  50932 [ 15.39%] |   4210 [  2.54%] |   27800 [  4.09%] |  101 [ 15.63%] |   0 [  0.00%] |  291 [ 21.70%] |
|    Unused Resources | 280068 [ 84.61%] | 161290 [ 97.46%] |  652200 [ 95.91%] |  545 [ 84.37%] | 104 [100.00%] | 1050 [ 78.30%] |
| qk_score            |  50932 [ 15.39%] |   4210 [  2.54%] |   27800 [  4.09%] |  101 [ 15.63%] |   0 [  0.00%] |  291 [ 21.70%] |
|    qk_score_1       |  50932 [ 15.39%] |   4210 [  2.54%] |   27800 [  4.09%] |  101 [ 15.63%] |   0 [  0.00%] |  291 [ 21.70%] |
+---------------------+------------------+------------------+-------------------+----------------+---------------+--------------+
"""  # noqa: E501
