// Both ends of the Flink jobs that bench/peers/flink_flows.py measures, as the table connector "bench-ends": its source offers a load's
// rows from memory, its sink counts what comes out and says when. Compiled by Janino, which Flink brings with it,
// so that no JDK is needed; it knows neither lambdas nor bridge methods, hence the raw types.

import java.io.BufferedReader;
import java.io.FileWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.SourceProvider;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.binary.BinaryStringData;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.RowKind;

public class FlinkEnds implements DynamicTableSourceFactory, DynamicTableSinkFactory {
    static final ConfigOption LOAD = ConfigOptions.key("load").stringType().defaultValue("");
    static final ConfigOption OUT = ConfigOptions.key("out").stringType().noDefaultValue();
    /** Rows to offer, all readers together. */
    static final ConfigOption ROWS = ConfigOptions.key("rows").longType().defaultValue(0L);
    /** Rows after which each reader says what time it is. */
    static final ConfigOption WARM = ConfigOptions.key("warm").longType().defaultValue(0L);
    /** Whether to keep each key's last value: costs a little for each row, so only where rows are few. */
    static final ConfigOption FINAL = ConfigOptions.key("final").booleanType().defaultValue(false);

    public String factoryIdentifier() { return "bench-ends"; }
    public Set requiredOptions() { Set s = new HashSet(); s.add(OUT); return s; }
    public Set optionalOptions() {
        Set s = new HashSet(); s.add(LOAD); s.add(ROWS); s.add(WARM); s.add(FINAL); return s;
    }

    public DynamicTableSource createDynamicTableSource(DynamicTableFactory.Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        Offered offered = new Offered();
        offered.load = (String) helper.getOptions().get(LOAD);
        offered.out = (String) helper.getOptions().get(OUT);
        offered.warm = ((Long) helper.getOptions().get(WARM)).longValue();
        return new OfferedTable(offered, ((Long) helper.getOptions().get(ROWS)).longValue(), context.getPhysicalRowDataType());
    }

    public DynamicTableSink createDynamicTableSink(DynamicTableFactory.Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        Counted counted = new Counted();
        counted.out = (String) helper.getOptions().get(OUT);
        counted.last = ((Boolean) helper.getOptions().get(FINAL)).booleanValue();
        return new CountedTable(counted);
    }

    /** A line of JSON more in the file; one write, so that lines of several threads do not mix. */
    static synchronized void say(String path, String line) throws IOException {
        FileWriter out = new FileWriter(path, true);
        try { out.write(line + "\n"); } finally { out.close(); }
    }

    /** The rows of a plain load ("sentence" or "key TAB value" a line), in memory before the first is offered. */
    public static class Offered implements GeneratorFunction {
        String load; String out; long warm;
        transient RowData[] rows; transient long offered;

        public void open(SourceReaderContext context) throws Exception {
            List read = new ArrayList();
            BufferedReader lines = Files.newBufferedReader(Paths.get(load, new String[0]), StandardCharsets.UTF_8);
            try {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) read.add(row(line));
            } finally { lines.close(); }
            rows = new RowData[read.size()];
            for (int i = 0; i < rows.length; i++) rows[i] = (RowData) read.get(i);
        }

        static RowData row(String line) {
            int tab = line.indexOf('\t');
            GenericRowData row = new GenericRowData(tab < 0 ? 1 : 2);
            BinaryStringData text = BinaryStringData.fromString(tab < 0 ? line : line.substring(0, tab));
            text.ensureMaterialized();
            row.setField(0, text);
            if (tab >= 0) row.setField(1, Long.valueOf(line.substring(tab + 1)));
            return row;
        }

        public Object map(Object index) throws Exception {
            if (offered++ == warm) say(out, "{\"warm\": " + System.currentTimeMillis() + "}");
            return rows[(int) (((Long) index).longValue() % rows.length)];
        }
        public void close() {}
    }

    public static class OfferedTable implements ScanTableSource {
        final Offered offered; final long rows; final DataType type;
        OfferedTable(Offered offered, long rows, DataType type) { this.offered = offered; this.rows = rows; this.type = type; }
        public ChangelogMode getChangelogMode() { return ChangelogMode.insertOnly(); }
        public ScanTableSource.ScanRuntimeProvider getScanRuntimeProvider(ScanTableSource.ScanContext context) {
            TypeInformation info = context.createTypeInformation(type);
            return SourceProvider.of(new DataGeneratorSource(offered, rows, info));
        }
        public DynamicTableSource copy() { return new OfferedTable(offered, rows, type); }
        public String asSummaryString() { return "bench-ends"; }
    }

    public static class CountedTable implements DynamicTableSink {
        final Counted counted;
        CountedTable(Counted counted) { this.counted = counted; }
        // a row a change, as the sink "blackhole" asks for: nothing is said of what a value was before
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            ChangelogMode.Builder mode = ChangelogMode.newBuilder();
            for (Iterator i = requested.getContainedKinds().iterator(); i.hasNext();) {
                RowKind kind = (RowKind) i.next();
                if (kind != RowKind.UPDATE_BEFORE) mode.addContainedKind(kind);
            }
            return mode.build();
        }
        public DynamicTableSink.SinkRuntimeProvider getSinkRuntimeProvider(DynamicTableSink.Context context) {
            return SinkV2Provider.of(counted);
        }
        public DynamicTableSink copy() { return new CountedTable(counted); }
        public String asSummaryString() { return "bench-ends"; }
    }

    public static class Counted implements Sink {
        String out; boolean last;
        public SinkWriter createWriter(WriterInitContext context) { return new Writer(out, last ? new HashMap() : null); }
    }

    public static class Writer implements SinkWriter {
        final String out; final Map values;
        long rows; long first; long end;
        Writer(String out, Map values) { this.out = out; this.values = values; }

        public void write(Object element, SinkWriter.Context context) {
            if (rows++ == 0) first = System.currentTimeMillis();
            if (values != null) {
                RowData row = (RowData) element;
                values.put(row.getString(0).toString(), Long.valueOf(row.getLong(1)));
            }
        }
        public void flush(boolean over) { if (over) end = System.currentTimeMillis(); }
        public void close() throws IOException {
            StringBuilder said = new StringBuilder();
            said.append("{\"rows\": " + rows + ", \"first\": " + first + ", \"last\": " + end + ", \"final\": {");
            if (values != null) {
                for (Iterator i = values.entrySet().iterator(); i.hasNext();) {
                    Map.Entry entry = (Map.Entry) i.next();
                    said.append("\"" + entry.getKey() + "\": " + entry.getValue() + (i.hasNext() ? ", " : ""));
                }
            }
            say(out, said.append("}}").toString());
        }
    }
}
